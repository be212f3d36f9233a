"""Poolings of a sequence, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.model.sequence_pooling import KINDS, SequencePooling
from tests import checks

MASK = [[True, True, True, False], [True, True, False, False]]


def pooled(rows: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    scores = rows @ kernel[:, 0]
    weights = np.exp(scores) / np.exp(scores).sum()
    return np.concatenate([rows.max(0), rows.min(0), rows.mean(0), weights @ rows])


def test_poolings_are_over_real_positions():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(2, 4, 3)).astype(np.float32)
    layer = SequencePooling()
    layer.build(vectors.shape)
    checks.randomize(layer)
    kernel = np.asarray(layer.kernel, np.float64)
    outputs = layer(tf.constant(vectors), mask=tf.constant(MASK))
    for row, sequence, length in zip(outputs, vectors, (3, 2), strict=True):
        np.testing.assert_allclose(row, pooled(sequence[:length], kernel), **checks.FEW)
    assert outputs.shape == layer.compute_output_shape(vectors.shape)
    np.testing.assert_allclose(layer(tf.constant(vectors))[0], pooled(vectors[0], kernel), **checks.FEW)
    assert SequencePooling.from_config(layer.get_config()).kinds == KINDS


@pytest.mark.parametrize("time", [0, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_pooling_of_no_real_position_is_0_and_has_finite_gradients(time, dtype):
    vectors = tf.ones((2, time, 3), dtype)
    mask = tf.constant([[True, True], [False, False]])[:, :time]
    layer = SequencePooling(dtype=dtype)
    layer.build(vectors.shape)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        outputs = layer(vectors, mask=mask)
    np.testing.assert_array_equal(outputs, [[time / 2] * 12, [0] * 12])
    assert np.isfinite(tape.gradient(outputs, vectors)).all()


def test_long_sequences_in_half_precision_are_summed_in_float32():
    vectors = tf.fill((1, 5000, 2), tf.constant(20.0, tf.float16))  # their sum is beyond float16
    outputs = SequencePooling(["mean", "attention"], dtype="float16")(vectors)
    assert outputs.dtype == tf.float16
    np.testing.assert_array_equal(outputs, [[20.0] * 4])


def test_a_single_kind_needs_no_list():
    layer = SequencePooling("mean")
    assert SequencePooling.from_config(layer.get_config()).kinds == layer.kinds == ("mean",)
    np.testing.assert_array_equal(layer(tf.constant([[[1.0, 4.0], [3.0, 0.0]]])), [[2.0, 2.0]])


@pytest.mark.parametrize("kinds", ["median", "max, min", [], ["median"], [["mean"]], None])
def test_a_pooling_of_another_kind_is_refused(kinds):
    with pytest.raises(InputError, match=r"^kinds: expected one or some of max, min, mean, attention, found"):
        SequencePooling(kinds)
