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
    layer = _layer()
    np.testing.assert_array_equal(layer.gate_bias, np.full(5, -2.0))
    checks.randomize(layer)
    inputs = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    weights = [np.asarray(getattr(layer, name), np.float64) for name in ("gate_kernel", "gate_bias")]
    weights += [np.asarray(getattr(layer, name), np.float64) for name in ("transform_kernel", "transform_bias")]
    outputs = layer(inputs)
    assert outputs.dtype == tf.float32
    np.testing.assert_allclose(outputs, reference.highway(inputs, *weights), **checks.TOLERANCE)


def test_one_step_changes_every_weight():
    layer = checks.randomize(_layer())
    inputs = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    assert checks.unchanged_by_a_step(layer, lambda: tf.reduce_sum(layer(inputs) ** 2)) == []
