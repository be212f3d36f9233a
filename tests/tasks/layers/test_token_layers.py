"""Word embedding and spelling, against NumPy."""

import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.tasks.layers.crf import CRF
from elmo_tf.tasks.layers.token_layers import Spelling, WordEmbedding
from elmo_tf.tasks.token_vectors import padded, word_table
from elmo_tf.text import char_ids
from tests import checks
from tests.tasks import toy

TOKENS = tf.constant([["Anna", "", "naïve", ""], ["x" * 60, "anna", "", ""]])
MASK = [[True, True, True, False], [True, True, False, False]]


def test_words_have_their_vectors_and_all_others_one():
    layer = WordEmbedding(["anna", "naïve", "x"], 2, lower=True)
    layer.vectors.assign([[5, 6], [0, 0], [0, 0], [7, 8]])
    layer.set_vectors(np.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(layer.vectors, [[5, 6], [1, 2], [3, 4], [7, 8]])
    expected = [[[1, 2], [5, 6], [3, 4], [0, 0]], [[5, 6], [1, 2], [0, 0], [0, 0]]]
    np.testing.assert_array_equal(layer(TOKENS), expected)
    np.testing.assert_array_equal(layer.compute_mask(TOKENS), MASK)
    assert WordEmbedding([], 2).vectors_of(tf.constant([["", "a"]])).shape == (1, 2, 2)
    cased = WordEmbedding(["anna"], 2)
    vectors = cased(TOKENS).numpy()
    assert (vectors[0, 0] == vectors[1, 0]).all() and (vectors[0, 0] != vectors[1, 1]).any()
    again = WordEmbedding.from_config(layer.get_config())
    assert (again.words, again.lower, again.dim) == (layer.words, True, 2)
    layer.set_vectors(np.array([[1, 2]]), zero_unknown=True)
    np.testing.assert_array_equal(layer.vectors, [[0, 0], [1, 2], [3, 4], [7, 8]])


def test_a_word_with_half_a_surrogate_pair_as_json_may_have_it_gets_a_vector():
    recipe = toy.Task.recipes["paper"]
    words = word_table(recipe, [["smile\ud83d", "a"], ["smile\ud83d"]], [["cut\ud83d"]]).words
    layer = WordEmbedding(words, 4, recipe.words.lower)
    vector, unknown = np.asarray(layer(padded([["smile\ud83d", "other"]])))[0]
    np.testing.assert_array_equal(vector, layer.vectors[1 + words.index("smile?")])
    np.testing.assert_array_equal(unknown, layer.vectors[0])


def test_frozen_vectors_are_not_trained():
    assert len(WordEmbedding(["a"], 2).trainable_variables) == 1
    # Length 1 in the mean square; five deviations of the mean of 50,000 squares of a uniform distribution.
    squares = np.sum(WordEmbedding([str(number) for number in range(999)], 50).vectors.numpy() ** 2, axis=1)
    assert abs(np.mean(squares) - 1) < 5 * np.sqrt(4 / 5 / 50_000)
    assert WordEmbedding(["a"], 2, trainable=False).trainable_variables == []


def spelled(layer: Spelling, token: str) -> np.ndarray:
    """The vector of a token's spelling in float64, as the definition has it."""
    ids = char_ids.encode_tokens([token.encode()])[0]
    characters, bias = (np.asarray(variable, np.float64) for variable in (layer.characters, layer.bias))
    rows, maxima = characters[ids[ids != char_ids.PAD]], []
    for kernel in layer.kernels:
        # There is a window for each character. An even width sees one more character behind than before it.
        width = kernel.shape[0]
        wide = np.pad(rows, (((width - 1) // 2, width // 2), (0, 0)))
        windows = [wide[start : start + width] for start in range(len(rows))]
        maxima.append(
            np.max([np.einsum("wd,wdf->f", window, np.asarray(kernel, np.float64)) for window in windows], axis=0)
        )
    return np.maximum(0, np.concatenate(maxima) + bias)


@pytest.mark.parametrize("width", [3, (3, 4, 5)], ids=["one width", "three widths"])
def test_spelling_is_the_maximum_over_the_windows_of_its_characters(width):
    layer = checks.randomize(Spelling(filters=5, dim=4, width=width))
    vectors = layer(TOKENS).numpy()
    dim = 5 if width == 3 else 15
    expected = [
        [spelled(layer, token.decode()) if real else np.zeros(dim) for token, real in zip(*pair, strict=True)]
        for pair in zip(TOKENS.numpy(), MASK, strict=True)
    ]
    close = {"rtol": 0, "atol": checks.rounding(4 * 5 + 1, 10)}
    np.testing.assert_allclose(vectors, expected, **close)
    # Whatever the batch's longest token is.
    np.testing.assert_allclose(layer(TOKENS[:1, :1])[0, 0], vectors[0, 0], **close)
    assert layer.get_config() == Spelling.from_config(layer.get_config()).get_config()


def test_a_file_of_a_model_from_when_the_layers_stood_elsewhere_is_loaded(tmp_path):
    tokens = keras.Input((3,), dtype="string")
    model = keras.Model(tokens, CRF(2)(WordEmbedding(["a", "b"], 2)(tokens)))
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as new, zipfile.ZipFile(tmp_path / "old.keras", "w") as old:
        for name in new.namelist():
            old.writestr(name, new.read(name).replace(b"elmo_tf.tasks.layers.", b"elmo_tf.layers."))
        assert b"elmo_tf.layers.crf" in old.read("config.json")
    loaded = keras.models.load_model(tmp_path / "old.keras")
    np.testing.assert_array_equal(loaded(TOKENS[:, :3]), model(TOKENS[:, :3]))
