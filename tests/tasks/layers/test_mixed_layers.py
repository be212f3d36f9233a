"""Another model's layers in the place of ELMo's: mixes, masks, memory, files, and a model of a wrong shape."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.tasks.layers.mixed_layers import MixedLayers
from elmo_tf.tasks.token_vectors import TokenVectors, word_table
from tests.tasks import small
from tests.tasks.layers.lengths import Lengths

TOKENS = tf.constant([["a", "bcd", ""], ["", "ab", "abcd"]])


@pytest.mark.parametrize(("mix", "expected"), [("learned", 2), ("average", 2), ("top", 3), (0, 1)])
def test_layers_are_mixed_and_the_model_is_not_trained(mix, expected):
    layer = MixedLayers(Lengths(), 2, mix)
    below, above = layer(TOKENS)
    np.testing.assert_allclose(below[0], [[expected] * 2, [3 * expected] * 2, [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(below, above)
    assert below._keras_mask.numpy().tolist() == [[True, True, False], [True] * 3]  # "" between tokens is a token
    assert len(layer.trainable_variables) == 2 * (2 if mix == "learned" else 1)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(TOKENS)[0])
    np.testing.assert_allclose(tape.gradient(total, layer.mixes[0].gamma), 2 * expected * 10, rtol=1e-6)


def test_remembered_layers_are_not_computed_again():
    model = Lengths()
    layer, sentences = MixedLayers(model, mix="top"), [["a", "bcd"], ["a"]]
    computed = layer(tf.constant([["a", "bcd"]]))
    layer.remember(sentences, None)
    calls = model.calls
    np.testing.assert_array_equal(layer(tf.constant([["a", "bcd"]])), computed)
    assert model.calls == calls
    np.testing.assert_array_equal(layer(tf.constant([["abcd", ""]]))[0, :, 0], [12, 0])


def test_a_system_with_the_model_is_in_its_file(tmp_path):
    system = small.systems.system_class("entailment")(small.recipe_of("entailment", "elmo.place=both"))
    examples = small.EXAMPLES["entailment"]
    system.labels = system.labels_of(examples)
    texts = [tokens for example in examples for tokens in system.texts(example)]
    vectors = TokenVectors(system.recipe, word_table(system.recipe, texts, []), model := Lengths())
    model.weight.assign([1, 5])
    network = system.network(vectors)
    network.save(tmp_path / "model.keras")
    inputs = {name: tf.constant(array) for name, array in system.inputs(examples).items()}
    expected = network(inputs)
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(inputs), expected)
    model.weight.assign([2, 5])
    assert not np.array_equal(network(inputs), expected)


def test_a_model_of_another_shape_is_refused():
    message = "model: expected a layer that returns (batch, num_layers, time, dim), found flat: (None, None, 4)"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        MixedLayers(keras.layers.Lambda(lambda _: 0, output_shape=(None, 4), name="flat"))
