"""HighwayLSTM against NumPy, and how it treats padding, directions and dropout."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.reference import sigmoid
from elmo_tf.tasks.layers.lstms import HighwayLSTM
from tests import checks

BATCH, TIME, DIM, UNITS = 3, 6, 4, 5
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(BATCH, TIME, DIM))
KEEP = np.where(RANDOM.random((BATCH, UNITS)) < 0.5, 0.0, 2.0)
# A whole row, one padded on the right, one with padding on the left and between.
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1]], bool)
# For values of order 1: sums of products with the input and the state, chained as `checks` counts them.
TOLERANCE = {"rtol": 0, "atol": checks.rounding(DIM + UNITS + 1 + 4, steps=4)}


def reference(inputs, kernel, recurrent_kernel, bias, mask=None, keep=None, go_backwards=False):
    """The layer as its docstring defines it, step by step, in float64."""
    outputs = np.zeros((*inputs.shape[:2], recurrent_kernel.shape[0]))
    for row, sequence in enumerate(inputs):
        cell = hidden = np.zeros(recurrent_kernel.shape[0])
        steps = [step for step in range(len(sequence)) if mask is None or mask[row, step]]
        for step in reversed(steps) if go_backwards else steps:
            *from_input, straight = np.split(sequence[step] @ kernel, 6)
            i, f, o, t, j = from_input + (hidden @ recurrent_kernel + bias).reshape(5, -1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(j)
            hidden = sigmoid(t) * sigmoid(o) * np.tanh(cell) + (1 - sigmoid(t)) * straight
            hidden = hidden if keep is None else hidden * keep[row]
            outputs[row, step] = hidden
    return outputs


def layer_of(dtype="float32", **options) -> HighwayLSTM:
    layer = HighwayLSTM(UNITS, dtype=dtype, **options)
    layer.build((None, None, DIM))
    return checks.randomize(layer)


def weights_of(layer) -> list[np.ndarray]:
    return [np.asarray(variable, np.float64) for variable in (layer.kernel, layer.recurrent_kernel, layer.bias)]


@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
def test_values_equal_the_reference(go_backwards, mask):
    layer = layer_of(go_backwards=go_backwards)
    outputs = layer(tf.constant(INPUTS, tf.float32), mask=None if mask is None else tf.constant(mask))
    assert outputs.shape == layer.compute_output_shape(INPUTS.shape) == (BATCH, TIME, UNITS)
    expected = reference(INPUTS, *weights_of(layer), mask, go_backwards=go_backwards)
    np.testing.assert_allclose(outputs, expected, **TOLERANCE)
    if mask is not None:
        assert not outputs.numpy()[~mask].any()


@pytest.mark.parametrize("go_backwards", [False, True])
def test_gradients_of_a_float64_layer_equal_differences(go_backwards, monkeypatch):
    layer = layer_of("float64", dropout_rate=0.5, go_backwards=go_backwards)
    monkeypatch.setattr(keras.random, "dropout", lambda values, rate, seed: tf.constant(KEEP))
    upstream = np.random.default_rng(2).normal(size=(BATCH, TIME, UNITS))
    inputs = tf.Variable(INPUTS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs, mask=tf.constant(MASK), training=True) * upstream)
    given = [inputs, *(variable.value for variable in layer.trainable_variables)]
    gradients = tape.gradient(loss, given)

    def total(*arrays):
        return np.sum(reference(*arrays, MASK, KEEP, go_backwards) * upstream)

    np.testing.assert_allclose(loss, total(*map(np.asarray, given)), rtol=1e-12)
    checks.assert_gradients(total, [array.numpy() for array in given], [array.numpy() for array in gradients])


def test_a_dropped_unit_is_dropped_at_all_steps_of_a_sequence_and_nothing_is_outside_of_training():
    layer = layer_of(dropout_rate=0.5)
    inputs = tf.constant(INPUTS, tf.float32)
    dropped = layer(inputs, training=True).numpy() == 0
    assert (dropped == dropped[:, :1]).all()
    assert 0 < dropped.mean() < 1
    assert (dropped[0, 0] != dropped[1, 0]).any() or (dropped[1, 0] != dropped[2, 0]).any()
    np.testing.assert_array_equal(layer(inputs), layer_of()(inputs))


def test_each_gate_starts_orthonormal_and_the_forget_gate_open():
    layer = HighwayLSTM(4)
    layer.build((None, None, 7))
    for kernel, blocks in ((layer.kernel, 6), (layer.recurrent_kernel, 5)):
        parts = np.split(np.asarray(kernel), blocks, 1)
        for part in parts:
            np.testing.assert_allclose(part.T @ part, np.eye(4), **checks.FEW)
        assert not np.allclose(parts[0], parts[1])
    np.testing.assert_array_equal(layer.bias, np.repeat([0, 1, 0, 0, 0], 4))
