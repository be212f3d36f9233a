"""CoupledLSTM and HighwayLSTM against NumPy, and how they treat padding, directions and dropout."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.reference import sigmoid
from elmo_tf.tasks.layers.lstms import CoupledLSTM, HighwayLSTM
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
def test_highway_lstm_has_the_values_of_its_definition(go_backwards, mask):
    layer = layer_of(go_backwards=go_backwards)
    outputs = layer(tf.constant(INPUTS, tf.float32), mask=None if mask is None else tf.constant(mask))
    assert outputs.shape == layer.compute_output_shape(INPUTS.shape) == (BATCH, TIME, UNITS)
    expected = reference(INPUTS, *weights_of(layer), mask, go_backwards=go_backwards)
    np.testing.assert_allclose(outputs, expected, **TOLERANCE)
    if mask is not None:
        assert not outputs.numpy()[~mask].any()


@pytest.mark.parametrize("go_backwards", [False, True])
def test_highway_lstm_has_the_gradients_of_differences_in_float64(go_backwards, monkeypatch):
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


ROW_LENGTHS = (6, 2, 3)
ROW_MASK = np.arange(6) < np.array(ROW_LENGTHS)[:, None]
ROWS = np.random.default_rng(0).normal(size=(3, 6, DIM)).astype(np.float32)
# The longest sum is that of a gate; errors of earlier steps fade, as in checks.TOLERANCE.
COUPLED_CLOSE = {"rtol": 0, "atol": checks.rounding(UNITS + DIM + 1, 2.0, 4)}


def coupled(layer: CoupledLSTM, vectors: np.ndarray, dropout_mask: np.ndarray | None = None) -> np.ndarray:
    """The outputs for one row without padding, float64, read from its start."""
    names = ("kernel", "recurrent_kernel", "bias", "initial_cell", "initial_output")
    kernel, recurrent, bias, cell, output = (np.asarray(getattr(layer, name), np.float64) for name in names)
    outputs = []
    for vector in vectors.astype(np.float64):
        gates = vector @ kernel + (output if dropout_mask is None else output * dropout_mask) @ recurrent + bias
        i, j, o = gates[:, :UNITS], gates[:, UNITS : 2 * UNITS], gates[:, 2 * UNITS :]
        cell = (1 - sigmoid(i)) * cell + sigmoid(i) * np.tanh(j)
        output = np.tanh(cell) * sigmoid(o)
        outputs.append(output[0])
    return np.array(outputs)


@pytest.fixture(scope="module")
def layer():
    made = CoupledLSTM(UNITS)
    made.build(ROWS.shape)
    return checks.randomize(made)


def with_weights_of(layer: CoupledLSTM, **options) -> CoupledLSTM:
    made = CoupledLSTM.from_config(layer.get_config() | options)
    made.build(ROWS.shape)
    made.set_weights(layer.get_weights())
    return made


@pytest.mark.parametrize("step", [1, -1], ids=["forward", "backward"])
def test_coupled_lstm_has_the_values_of_its_formulas_and_zero_at_padding(layer, step):
    made = with_weights_of(layer, go_backwards=step == -1)
    outputs = made(tf.constant(ROWS), mask=tf.constant(ROW_MASK)).numpy()
    for row, vectors, length in zip(outputs, ROWS, ROW_LENGTHS, strict=True):
        np.testing.assert_allclose(row[:length], coupled(layer, vectors[:length][::step])[::step], **COUPLED_CLOSE)
        assert not row[length:].any()
    np.testing.assert_allclose(made(tf.constant(ROWS[:1]))[0], coupled(layer, ROWS[0][::step])[::step], **COUPLED_CLOSE)


def test_dropout_of_coupled_lstm_has_one_mask_for_all_steps_and_only_in_training(layer, monkeypatch):
    made, vectors = with_weights_of(layer, dropout_rate=0.4), tf.constant(ROWS)
    np.testing.assert_array_equal(made(vectors), layer(vectors))
    masks, draw = [], keras.random.dropout

    def drawn(*arguments, **options):
        masks.append(draw(*arguments, **options))
        return masks[-1]

    monkeypatch.setattr(keras.random, "dropout", drawn)
    outputs = made(vectors, training=True)
    (dropout_mask,) = [np.asarray(mask, np.float64) for mask in masks]
    assert dropout_mask.shape == (3, UNITS)
    assert set(np.unique(dropout_mask.round(4))) == {0, round(1 / 0.6, 4)}
    for row, sequence, mask in zip(outputs, ROWS, dropout_mask, strict=True):
        np.testing.assert_allclose(row, coupled(layer, sequence, mask), **COUPLED_CLOSE)
