"""The layer takes sentences and splits them itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.errors import InputError
from tests import checks
from tests.helpers import slow

TEXT = ["The bank  lends\tmoney .", "", "naïve $3.50", "river"]
SPLIT = {
    "whitespace": [["The", "bank", "lends", "money", "."], [], ["naïve", "$3.50"], ["river"]],
    "unicode": [["The", "bank", "lends", "money", "."], [], ["naïve", "$", "3.50"], ["river"]],
    "characters": [[*"Thebanklendsmoney."], [], [*"naïve$3.50"], [*"river"]],
}


@pytest.fixture(scope="module")
def layer(savedmodel):
    return elmo_tf.ELMo(savedmodel.path, tokenizer="whitespace")


@pytest.mark.parametrize("tokenizer", [slow("whitespace"), "unicode", slow("characters")])
def test_sentences_give_the_vectors_and_the_mask_of_their_tokens(savedmodel, plain, tokenizer):
    split = elmo_tf.ELMo(savedmodel.path, tokenizer=tokenizer)
    expected = plain(SPLIT[tokenizer])
    found, ids = split(TEXT), split.char_ids(TEXT)
    np.testing.assert_allclose(found, expected, **checks.TOLERANCE)
    np.testing.assert_array_equal(found._keras_mask, expected._keras_mask)
    for form in (TEXT, tf.constant(TEXT), tuple(TEXT), np.array(TEXT), np.array(TEXT, object)):
        np.testing.assert_array_equal(split.char_ids(form), plain.char_ids(SPLIT[tokenizer]))
    np.testing.assert_allclose(split(ids), expected, **checks.TOLERANCE)


def test_boundaries_and_batches_without_a_token(savedmodel, layer):
    for empty in (["", " "], []):
        assert layer(empty).shape == (len(empty), 0, 16)
        assert layer(empty)._keras_mask.shape == (len(empty), 0)
    with_boundaries = elmo_tf.ELMo(savedmodel.path, tokenizer="whitespace", boundaries=True)
    found = with_boundaries(["a b", ""])
    assert np.asarray(found._keras_mask).tolist() == [[True] * 4, [True, True, False, False]]


def test_what_the_layer_does_not_take_is_named(savedmodel, layer):
    with pytest.raises(InputError, match=r"expected sentences, strings \(batch,\), or .*, found string \(1, 2"):
        layer(tf.constant([["a", "b"]]))
    with pytest.raises(InputError, match=r"expected sentences, .*, found string \(\)"):
        layer("a sentence")
    with pytest.raises(InputError, match=r"has to begin with keras.Input\(\(\), dtype='string'\)"):
        keras.Sequential([layer, keras.layers.Dense(2)])(tf.constant(TEXT))
    with pytest.raises(InputError, match=r"^tokenizer: expected one of whitespace, .*, found 'moses'$"):
        elmo_tf.ELMo(savedmodel.path, tokenizer="moses")
