"""Layers of sentences that are computed once."""

import errno
import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import ELMo
from elmo_tf.errors import InputError
from elmo_tf.model import cached_layers
from elmo_tf.model.cached_layers import CachedLayers
from tests import checks
from tests.helpers import run_python, slow
from tests.keras_layer.sentences import ONE_LAYER

SENTENCES = [["the", "cat"], ["a", "", "dog", "sat"], ["the", "cat"], []]
BATCH = tf.constant([["a", "", "dog", "sat"], ["the", "cat", "", ""]])


@pytest.fixture(scope="module")
def layer():
    return ELMo(ONE_LAYER, num_mixes=2)


@pytest.mark.parametrize("in_memory", [0, slow(2**30)])
def test_remembered_layers_are_those_that_were_computed(layer, tmp_path, monkeypatch, in_memory):
    layer.cached_layers = None
    expected = [mixed.numpy() for mixed in layer(BATCH)]
    computed = layer._layers_of(BATCH).numpy()
    monkeypatch.setattr(cached_layers, "_IN_MEMORY", in_memory)
    layer.remember(SENTENCES, tmp_path)
    assert isinstance(layer.cached_layers._layers, np.memmap) == (in_memory == 0)
    # The file is unlinked while it is in use.
    assert list(tmp_path.iterdir()) == []

    # float16 has 11 bits.
    remembered = tf.function(layer.cached_layers)(BATCH)
    np.testing.assert_allclose(remembered, computed, rtol=2.0**-11, atol=2.0**-25)
    checks.assert_all_close(layer(BATCH), expected, rtol=0, atol=2.0**-11 * np.abs(computed).max())


ONE_THREAD = """
import tensorflow as tf
from elmo_tf.model.cached_layers import CachedLayers

def compute(tokens):
    lengths = tf.cast(tf.strings.length(tokens), tf.float32)[:, None, :, None]
    return tf.while_loop(lambda step, _: step < 3, lambda step, lengths: (step + 1, lengths + 1), (0, lengths))[1]

cached = CachedLayers([["a"]], compute, 1, 1)
print(tf.function(cached)(tf.constant([["a", "dog"]])).numpy().ravel())
"""


@pytest.mark.slow  # a process that loads TensorFlow
def test_a_new_sentence_is_computed_where_tensorflow_has_one_thread():
    done = run_python("-c", ONE_THREAD, env={"TF_NUM_INTEROP_THREADS": "1"}, timeout=120, check=False)
    assert done.stdout == "[4. 6.]\n", done.stderr


def test_each_sentence_is_computed_once():
    counts = []

    def compute(tokens):
        tf.py_function(lambda rows: counts.append(len(rows)), [tokens], [])
        return tf.zeros((tf.shape(tokens)[0], 3, tf.shape(tokens)[1], 4))

    CachedLayers(SENTENCES, compute, 3, 4)
    assert sum(counts) == 2


FROZEN = "only a layer with a frozen biLM, .*, can remember them; this one has trainable_bilm="
SPLIT = "expected lists of tokens; split a sentence first, found b?'a b'"


@pytest.mark.parametrize(
    ("options", "sentences", "message"),
    [
        ({"trainable_bilm": True}, SENTENCES, FROZEN),
        ({"boundaries": True}, SENTENCES, FROZEN),
        ({}, "a b", SPLIT),
        ({}, ["a b"], SPLIT),
        ({}, [b"a b"], SPLIT),
    ],
)
def test_only_a_frozen_bilm_without_boundaries_can_remember_and_only_lists_of_tokens(options, sentences, message):
    with pytest.raises(InputError, match=f"^sentences: {message}"):
        ELMo(ONE_LAYER, **options).remember(sentences)


def test_sentences_and_their_tokens_are_remembered_alike(monkeypatch):
    layer = ELMo(ONE_LAYER, tokenizer="penn")
    sentences, tokens = ["A cat isn't here.", "The dog"], [["A", "cat", "is", "n't", "here", "."], ["The", "dog"]]
    expected = layer(sentences)
    largest = np.abs(layer._layers_of(tf.ragged.constant(tokens).to_tensor(""))).max()
    tolerance = {"rtol": 0, "atol": 2.0**-11 * largest}  # float16 has 11 bits
    for remembered in (sentences, tokens):
        layer.remember(remembered)
        monkeypatch.setattr(layer.cached_layers, "_compute", None)  # fails if anything is computed
        for inputs in (sentences, tokens):
            np.testing.assert_allclose(layer(inputs), expected, **tolerance)


def test_a_model_whose_layer_remembers_is_not_exported(layer, tmp_path):
    layer.remember(SENTENCES)
    tokens = keras.Input((None,), dtype="string")
    with pytest.raises(InputError, match=r"^the layer elmo\w*: it remembers sentences, .* call its `forget\(\)` first"):
        keras.Model(tokens, layer(tokens)).export(tmp_path, verbose=False)


def test_a_graph_computes_what_the_layer_forgot(layer):
    def looks_up() -> bool:
        return "PyFunc" in str(tf.function(layer).get_concrete_function(BATCH).graph.as_graph_def())

    layer.remember(SENTENCES)
    assert looks_up()
    layer.forget()
    assert not looks_up()


def test_a_disk_without_room_is_an_error_before_anything_is_stored(layer, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cached_layers, "_IN_MEMORY", 0)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(InputError, match=rf"^{tmp_path}: no room for [0-9,]+ bytes, .* \(No space left"):
        layer.remember(SENTENCES, tmp_path)
