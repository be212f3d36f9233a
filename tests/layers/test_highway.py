"""Highway: contract and values."""

import numpy as np
import tensorflow as tf

from elmo_tf.layers.highway import Highway
from tests import checks, reference


def _layer(dim=5):
    layer = Highway()
    layer.build((None, dim))
    return layer


def test_values_equal_the_reference():
    layer = checks.randomize(_layer())
    inputs = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    weights = [np.asarray(getattr(layer, name), np.float64) for name in ("gate_kernel", "gate_bias")]
    weights += [np.asarray(getattr(layer, name), np.float64) for name in ("transform_kernel", "transform_bias")]
    outputs = layer(inputs)
    assert outputs.dtype == tf.float32
    np.testing.assert_allclose(outputs, reference.highway(inputs, *weights), **checks.TOLERANCE)


def test_open_gate_gives_the_transform_and_closed_gate_the_input():
    layer = _layer(2)
    layer.gate_kernel.assign(np.zeros((2, 2)))
    layer.transform_kernel.assign(np.eye(2))
    layer.transform_bias.assign([10.0, 10.0])
    inputs = np.array([[1.0, -20.0]], np.float32)
    layer.gate_bias.assign([50.0, 50.0])
    np.testing.assert_array_equal(layer(inputs), [[11.0, 0.0]])
    layer.gate_bias.assign([-50.0, -50.0])
    np.testing.assert_allclose(layer(inputs), inputs, **checks.FEW)


def test_gate_starts_mostly_closed():
    np.testing.assert_array_equal(_layer().gate_bias, np.full(5, -2.0))


def test_config_round_trip():
    layer = Highway("bfloat16", name="first")
    assert Highway.from_config(layer.get_config()).get_config() == layer.get_config()


def test_one_step_changes_every_weight():
    layer = checks.randomize(_layer())
    inputs = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    assert checks.unchanged_by_a_step(layer, lambda: tf.reduce_sum(layer(inputs) ** 2)) == []
