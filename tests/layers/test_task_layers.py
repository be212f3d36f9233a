"""Word embedding, spelling and pooling, against NumPy."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.layers.sequence_pooling import KINDS, SequencePooling
from elmo_tf.layers.spelling import Spelling
from elmo_tf.layers.word_embedding import WordEmbedding
from elmo_tf.text import char_ids
from tests import checks

TOKENS = tf.constant([["Anna", "", "naïve", ""], ["x" * 60, "anna", "", ""]])
MASK = [[True, True, True, False], [True, True, False, False]]


def test_words_have_their_vectors_and_all_others_one():
    layer = WordEmbedding(["anna", "naïve", "x"], 2, lower=True)
    layer.set_vectors(["naïve", "anna"], np.array([[3, 4], [1, 2]]), np.array([5, 6]))
    found = layer(TOKENS)
    expected = [[[1, 2], [5, 6], [3, 4], [0, 0]], [[5, 6], [1, 2], [0, 0], [0, 0]]]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(layer.compute_mask(TOKENS), MASK)
    cased = WordEmbedding(["anna"], 2)
    vectors = cased(TOKENS).numpy()
    assert (vectors[0, 0] == vectors[1, 0]).all() and (vectors[0, 0] != vectors[1, 1]).any()
    again = WordEmbedding.from_config(layer.get_config())
    assert (again.words, again.lower, again.dim) == (layer.words, True, 2)


@pytest.mark.slow
def test_lower_case_does_not_depend_on_the_language_of_the_user():
    program = """
import tensorflow as tf
from elmo_tf.layers.word_embedding import WordEmbedding
layer = WordEmbedding(["istanbul", "öl"], 2, lower=True)
print((layer(tf.constant([["ISTANBUL", "ÖL"]])).numpy()[0] == layer.vectors.numpy()[1:]).all())
"""
    environment = os.environ | {"LC_ALL": "tr_TR.UTF-8", "PYTHONPATH": os.getcwd()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_frozen_vectors_are_not_trained():
    assert len(WordEmbedding(["a"], 2).trainable_variables) == 1
    # Length 1 in the mean square; five deviations of the mean of 50,000 squares of a uniform distribution.
    squares = np.sum(WordEmbedding([str(number) for number in range(999)], 50).vectors.numpy() ** 2, axis=1)
    assert abs(np.mean(squares) - 1) < 5 * np.sqrt(4 / 5 / 50_000)
    assert WordEmbedding(["a"], 2, trainable=False).trainable_variables == []


def spelled(layer: Spelling, token: str) -> np.ndarray:
    """The vector of a token's spelling in float64, as the definition has it."""
    ids = char_ids.encode_tokens([token.encode()])[0]
    characters, bias = (np.asarray(one, np.float64) for one in (layer.characters, layer.bias))
    rows, found = characters[ids[ids != char_ids.PAD]], []
    for kernel in layer.kernels:
        # As many positions as there are characters; an even width sees one more behind than before.
        width = kernel.shape[0]
        wide = np.pad(rows, (((width - 1) // 2, width // 2), (0, 0)))
        windows = [wide[place : place + width] for place in range(len(rows))]
        found.append(np.max([np.einsum("wd,wdf->f", one, np.asarray(kernel, np.float64)) for one in windows], axis=0))
    return np.maximum(0, np.concatenate(found) + bias)


@pytest.mark.parametrize("width", [3, (3, 4, 5)], ids=["one width", "three widths"])
def test_spelling_is_the_maximum_over_the_windows_of_its_characters(width):
    layer = checks.randomize(Spelling(filters=5, dim=4, width=width))
    found = layer(TOKENS).numpy()
    dim = 5 if width == 3 else 15
    expected = [
        [spelled(layer, token.decode()) if real else np.zeros(dim) for token, real in zip(*pair, strict=True)]
        for pair in zip(TOKENS.numpy(), MASK, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=checks.rounding(4 * 5 + 1, 10), rtol=0)
    # Whatever the batch's longest token is.
    np.testing.assert_allclose(layer(TOKENS[:1, :1])[0, 0], found[0, 0], atol=checks.rounding(4 * 5 + 1, 10), rtol=0)
    assert layer.get_config() == Spelling.from_config(layer.get_config()).get_config()


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
    found = layer(tf.constant(vectors), mask=tf.constant(MASK))
    for row, one, length in zip(found, vectors, (3, 2), strict=True):
        np.testing.assert_allclose(row, pooled(one[:length], kernel), **checks.FEW)
    assert found.shape == layer.compute_output_shape(vectors.shape)
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
        found = layer(vectors, mask=mask)
    np.testing.assert_array_equal(found, [[time / 2] * 12, [0] * 12])
    assert np.isfinite(tape.gradient(found, vectors)).all()


@pytest.mark.parametrize("kinds", ["mean", [], ["median"]])
def test_a_pooling_of_another_kind_is_refused(kinds):
    with pytest.raises(InputError, match=r"^kinds: expected a list of some of max, min, mean, attention, found"):
        SequencePooling(kinds)


@pytest.mark.parametrize("length", [1, 3])
def test_the_attention_of_the_systems_is_a_softmax_of_products_over_real_tokens(length):
    """keras.layers.Attention, as sentiment and entailment use it."""
    random = np.random.default_rng(1)
    queries, keys = random.normal(size=(1, 4, 3)), random.normal(size=(1, 4, 3))
    masks = [tf.constant([[True] * 4]), tf.constant([[place < length for place in range(4)]])]
    layer = keras.layers.Attention()
    found = layer([tf.constant(one, tf.float32) for one in (queries, keys)], mask=masks)
    scores = queries[0] @ keys[0, :length].T
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(found[0], weights @ keys[0, :length], **checks.FEW)
