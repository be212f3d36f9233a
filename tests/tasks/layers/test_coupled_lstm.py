"""The LSTM with coupled gates, against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.reference import sigmoid
from elmo_tf.tasks.layers.lstms import CoupledLSTM
from tests import checks

UNITS, DIM, LENGTHS = 5, 4, (6, 2, 3)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]
VECTORS = np.random.default_rng(0).normal(size=(3, 6, DIM)).astype(np.float32)
# The longest sum is that of a gate; errors of earlier steps fade, as in checks.TOLERANCE.
CLOSE = {"rtol": 0, "atol": checks.rounding(UNITS + DIM + 1, 2.0, 4)}


def expected(layer: CoupledLSTM, vectors: np.ndarray, dropout_mask: np.ndarray | None = None) -> np.ndarray:
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
    made.build(VECTORS.shape)
    return checks.randomize(made)


def with_weights_of(layer: CoupledLSTM, **options) -> CoupledLSTM:
    made = CoupledLSTM.from_config(layer.get_config() | options)
    made.build(VECTORS.shape)
    made.set_weights(layer.get_weights())
    return made


@pytest.mark.parametrize("step", [1, -1], ids=["forward", "backward"])
def test_outputs_are_those_of_the_formulas_and_zero_at_padding(layer, step):
    made = with_weights_of(layer, go_backwards=step == -1)
    outputs = made(tf.constant(VECTORS), mask=tf.constant(MASK)).numpy()
    for row, vectors, length in zip(outputs, VECTORS, LENGTHS, strict=True):
        np.testing.assert_allclose(row[:length], expected(layer, vectors[:length][::step])[::step], **CLOSE)
        assert not row[length:].any()
    np.testing.assert_allclose(made(tf.constant(VECTORS[:1]))[0], expected(layer, VECTORS[0][::step])[::step], **CLOSE)


def test_dropout_has_one_mask_for_all_steps_and_only_in_training(layer, monkeypatch):
    made, vectors = with_weights_of(layer, dropout_rate=0.4), tf.constant(VECTORS)
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
    for row, sequence, mask in zip(outputs, VECTORS, dropout_mask, strict=True):
        np.testing.assert_allclose(row, expected(layer, sequence, mask), **CLOSE)
