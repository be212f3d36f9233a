"""Highway: contract and values."""

import numpy as np
import tensorflow as tf

from elmo_tf.model.char_cnn import Highway
from elmo_tf.reference import highway
from tests import checks


def test_values_equal_the_reference_and_one_step_changes_every_weight():
    layer = Highway()
    layer.build((None, 5))
    np.testing.assert_array_equal(layer.gate_bias, np.full(5, -2.0))
    checks.randomize(layer)
    inputs = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    names = ("gate_kernel", "gate_bias", "transform_kernel", "transform_bias")
    outputs = layer(inputs)
    assert outputs.dtype == tf.float32
    expected = highway(inputs, *(np.asarray(getattr(layer, name), np.float64) for name in names))
    np.testing.assert_allclose(outputs, expected, **checks.TOLERANCE)
    assert checks.unchanged_by_a_step(layer, lambda: tf.reduce_sum(layer(inputs) ** 2)) == []
