"""The SavedModel contract: signatures, values, what must not matter, what can be trained; in Keras too."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.reference import scalar_mix
from tests import checks, float64
from tests.helpers import MICRO, batch_char_ids, slow
from tests.savedmodel.calls import (
    LENGTHS,
    LONGEST,
    PADDED,
    SAME,
    TEXT,
    WORDS,
    assert_same,
    embed,
    embed_char_ids,
    embed_tokens,
    numbers_of,
)

# MICRO has 2 layers above the token layer and a projection of 8.
OUTPUTS = {
    "layers": ((None, 3, None, 16), tf.float32),
    "word_emb": ((None, None, 8), tf.float32),
    "lstm_outputs1": ((None, None, 16), tf.float32),
    "lstm_outputs2": ((None, None, 16), tf.float32),
    "elmo": ((None, None, 16), tf.float32),
    "default": ((None, 16), tf.float32),
    "mask": ((None, None), tf.bool),
}
STRINGS = {"strings": ((None,), tf.string)}
TOKENS = {"tokens": ((None, None), tf.string), "sequence_len": ((None,), tf.int32)}
TOKEN_OUTPUT = {"tokens": ((None, None), tf.string)}
MORE_OUTPUTS = dict.fromkeys(("default", "serving_default", "tokens"), TOKEN_OUTPUT)
INPUTS = {
    "default": STRINGS,
    "serving_default": STRINGS,
    "tokens": TOKENS,
    "char_ids": {"char_ids": ((None, None, 50), tf.int32)},
}


def described(specs) -> dict:
    return {name: (tuple(spec.shape), spec.dtype) for name, spec in specs.items()}


def test_signatures_have_the_names_shapes_and_dtypes_of_the_contract(loaded):
    assert set(loaded.signatures) == set(INPUTS)
    for name, signature in loaded.signatures.items():
        positional, keywords = signature.structured_input_signature
        assert positional == ()
        assert described(keywords) == INPUTS[name], name
        assert described(signature.structured_outputs) == OUTPUTS | MORE_OUTPUTS.get(name, {}), name


def test_all_signatures_and_the_call_agree(loaded):
    expected = embed(loaded, TEXT)
    assert_same(embed(loaded, TEXT, "serving_default"), expected)
    assert_same(embed_tokens(loaded, WORDS, LONGEST), expected)
    assert_same(embed_char_ids(loaded, WORDS, LONGEST), expected)
    for training in ({}, {"training": False}, {"training": True}):
        assert_same(numbers_of(loaded(tf.constant(TEXT), **training)), expected)


def test_whoever_sends_text_gets_the_token_of_each_vector(loaded):
    for outputs in (loaded.signatures["serving_default"](strings=tf.constant(TEXT)), loaded(tf.constant(TEXT))):
        assert outputs["tokens"].numpy().tolist() == PADDED
    given = tf.constant([[b"a", b"", b"left", b"out"], [b"", b"", b"", b""]])
    outputs = loaded.signatures["tokens"](tokens=given, sequence_len=tf.constant([2, 0]))
    assert outputs["tokens"].numpy().tolist() == [[b"a", b"", b"", b""], [b""] * 4]
    for sentences in ([], [b""], [b" ", b""]):
        nothing = loaded.signatures["default"](strings=tf.constant(sentences, tf.string))
        assert (nothing["tokens"].shape, nothing["layers"].shape[1:]) == ((len(sentences), 0), (3, 0, 16))
        np.testing.assert_array_equal(nothing["default"], np.zeros((len(sentences), 16)))


def test_layers_are_those_of_the_network_and_of_the_reference(loaded, savedmodel):
    outputs = embed(loaded, TEXT)
    layers, mask = savedmodel.bilm(batch_char_ids(WORDS))
    np.testing.assert_allclose(outputs["layers"], layers, **SAME)
    np.testing.assert_array_equal(outputs["mask"], mask)
    # Ready tokens are taken as they are: empty, or with a space.
    odd = [b"", b"two words", b"", b"last"]
    ready = embed_tokens(loaded, [odd], 5)
    assert ready["mask"].tolist() == [[True] * 4 + [False]]
    weights = float64.weights_of(savedmodel.bilm)
    for words, values in zip([*WORDS, odd], [*outputs["layers"], ready["layers"][0]], strict=True):
        if words:
            expected = float64.layers(weights, MICRO, words)
            np.testing.assert_allclose(values[:, : len(words)], expected, **checks.TOLERANCE)


def test_the_other_outputs_are_parts_and_means_of_these(loaded):
    outputs = embed(loaded, TEXT)
    np.testing.assert_array_equal(outputs["word_emb"], outputs["layers"][:, 0, :, :8])
    np.testing.assert_array_equal(outputs["lstm_outputs1"], outputs["layers"][:, 1])
    np.testing.assert_array_equal(outputs["lstm_outputs2"], outputs["layers"][:, 2])
    for words, mean, vectors in zip(WORDS, outputs["default"], outputs["elmo"], strict=True):
        expected = vectors[: len(words)].astype(np.float64).mean(0) if words else np.zeros(16)
        np.testing.assert_allclose(mean, expected, **SAME)


@pytest.mark.parametrize("filler", [b"", b"word", b"<S>"])
def test_padding_is_exactly_0_and_what_stands_there_does_not_matter(loaded, filler):
    expected = embed(loaded, TEXT)
    outputs = embed_tokens(loaded, WORDS, LONGEST + 3, filler)
    assert_same(embed_char_ids(loaded, WORDS, LONGEST + 3), outputs)
    for name in ("layers", "word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "mask"):
        time = 2 if name == "layers" else 1
        values, wide = (np.moveaxis(tensors[name], time, 1) for tensors in (expected, outputs))
        np.testing.assert_allclose(wide[:, :LONGEST], values, **SAME, err_msg=name)
        for row, length in enumerate(LENGTHS):
            assert not wide[row, length:].any(), name
    np.testing.assert_allclose(outputs["default"], expected["default"], **SAME)


def test_the_mix_alone_is_trainable_and_a_step_changes_elmo_accordingly(savedmodel, loaded, request):
    model = loaded
    for variable in model.trainable_variables:
        request.addfinalizer(functools.partial(variable.assign, variable.numpy()))
    scalar_parameters, gamma = model.trainable_variables
    np.testing.assert_allclose(scalar_parameters, savedmodel.scalar_parameters, **checks.FEW)
    np.testing.assert_allclose(gamma, savedmodel.gamma, **checks.FEW)
    assert list(model.regularization_losses) == []
    others = [variable for variable in model.variables if variable.shape not in ((3,), ())]
    assert sum(variable.shape.num_elements() for variable in others) == MICRO.num_parameters()
    before = embed(model, TEXT)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(others)
        loss = tf.reduce_sum(tf.square(model(tf.constant(TEXT))["elmo"]))
    gradients = tape.gradient(loss, [scalar_parameters, gamma])
    assert all(np.abs(gradient).max() > 1e-3 for gradient in gradients)
    assert all(gradient is None or not np.any(gradient) for gradient in tape.gradient(loss, others))
    # elmo is proportional to gamma.
    np.testing.assert_allclose(gradients[1], 2 * loss / gamma, rtol=checks.rounding(before["elmo"].size))
    scalar_parameters.assign_sub(0.1 * gradients[0])
    gamma.assign_sub(0.01 * gradients[1])
    after = embed(model, TEXT)
    np.testing.assert_array_equal(after["layers"], before["layers"])
    assert np.abs(after["elmo"] - before["elmo"]).max() > 1e-3
    layers = np.moveaxis(after["layers"].astype(np.float64), 1, 0)
    expected = scalar_mix(layers, scalar_parameters.numpy(), gamma.numpy())
    np.testing.assert_allclose(after["elmo"], expected, **checks.TOLERANCE)


@pytest.mark.parametrize("endpoint", [slow("default"), "serving_default", slow("tokens"), slow("char_ids")])
def test_each_signature_is_a_layer_of_a_functional_keras_model(savedmodel, loaded, endpoint):
    _, specs = loaded.signatures[endpoint].structured_input_signature
    # The tokens come before their lengths.
    names = sorted(specs, reverse=True)
    inputs = {name: keras.Input(specs[name].shape[1:], dtype=specs[name].dtype.name, name=name) for name in names}
    layer = keras.layers.TFSMLayer(str(savedmodel.path), call_endpoint=endpoint)
    first, *others = inputs.values()
    model = keras.Model(list(inputs.values()), layer(first, **{tensor.name: tensor for tensor in others}))
    values = {
        "strings": tf.constant(TEXT),
        "tokens": tf.constant(PADDED),
        "sequence_len": tf.constant(LENGTHS),
        "char_ids": tf.constant(batch_char_ids(WORDS)),
    }
    outputs = model.predict([values[name] for name in names], verbose=0)
    assert_same(numbers_of(outputs), embed(loaded, TEXT))
    if endpoint != "char_ids":
        assert outputs["tokens"].tolist() == PADDED
    assert [tuple(variable.shape) for variable in layer.trainable_variables] == [(3,), ()]
    assert sum(int(np.prod(variable.shape)) for variable in layer.non_trainable_variables) == MICRO.num_parameters()
