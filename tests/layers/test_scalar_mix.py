"""ScalarMix: contract and values."""

import numpy as np
import tensorflow as tf

from elmo_tf.layers.scalar_mix import ScalarMix
from tests import checks, reference

LAYERS = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(np.float32)  # (batch, layers, time, dim)


def _layer():
    layer = ScalarMix(3)
    layer.build(LAYERS.shape)
    return layer


def test_starts_as_the_mean_of_the_layers():
    np.testing.assert_allclose(_layer()(LAYERS), LAYERS.mean(1), **checks.TOLERANCE)


def test_values_equal_the_reference():
    layer = _layer()
    layer.scalar_parameters.assign([0.3, -1.0, 2.0])
    layer.gamma.assign(1.7)
    expected = reference.scalar_mix(LAYERS.swapaxes(0, 1).astype(np.float64), np.array([0.3, -1.0, 2.0]), 1.7)
    outputs = layer(LAYERS)
    assert outputs.dtype == tf.float32
    np.testing.assert_allclose(outputs, expected, **checks.TOLERANCE)


def test_a_large_scalar_selects_its_layer():
    layer = _layer()
    layer.scalar_parameters.assign([0.0, 100.0, 0.0])
    np.testing.assert_allclose(layer(LAYERS), LAYERS[:, 1], rtol=1e-6)


def test_static_shape_is_known():
    assert _layer().compute_output_shape((2, 3, 4, 6)) == (2, 4, 6)


def test_config_round_trip():
    layer = ScalarMix(3, name="mix")
    assert ScalarMix.from_config(layer.get_config()).get_config() == layer.get_config()


def test_one_step_changes_every_weight():
    layer = _layer()
    assert checks.unchanged_by_a_step(layer, lambda: tf.reduce_sum(layer(LAYERS) ** 2)) == []
