"""The Keras layer by itself: values of every mix, masks, what it refuses."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.reference import scalar_mix
from elmo_tf.savedmodel import checksums
from tests import checks, float64
from tests.helpers import MICRO, batch_char_ids
from tests.keras_layer.sentences import LENGTHS, MASK, SENTENCES, TOKENS


def expected_layers(savedmodel, sentence: list[bytes]) -> np.ndarray:
    """The layers of one sentence in float64, `(num_layers, time, dim)`."""
    return float64.layers(float64.weights_of(savedmodel.bilm), MICRO, sentence)


def assert_vectors(vectors, savedmodel, parameters, gamma=1.0, normalize=False):
    """Asserts that every sentence has its mix of the reference's layers, and padding 0."""
    assert vectors.shape == (4, 6, 16)
    for row, sentence in enumerate(SENTENCES):
        if sentence:
            layers = expected_layers(savedmodel, sentence)
            if normalize:
                layers = layers - layers.mean(-1, keepdims=True)
                layers /= np.sqrt(np.square(layers).mean(-1, keepdims=True) + 1e-6)
            wanted = scalar_mix(layers, np.array(parameters, np.float64), gamma)
            np.testing.assert_allclose(vectors[row, : len(sentence)], wanted, **checks.TOLERANCE)
        assert not np.any(vectors[row, len(sentence) :])


@pytest.mark.parametrize(
    ("mix", "parameters"), [("learned", [0, 0, 0]), ("top", [-200, -200, 0]), ([0.3, -0.5, 1.0], [0.3, -0.5, 1.0])]
)
def test_a_mix_weights_the_layers_as_it_says(savedmodel, with_options, mix, parameters):
    layer = with_options(mix=mix)
    assert_vectors(layer(TOKENS), savedmodel, parameters)
    layer.mixes[0].gamma.assign(-1.5)
    assert_vectors(layer(TOKENS), savedmodel, parameters, -1.5)
    learned = {weight.path for weight in layer.trainable_weights}
    assert learned == {"mix_0/gamma"} | ({"mix_0/scalar_parameters"} if mix == "learned" else set())


def test_each_of_several_normalized_mixes_has_parameters_and_a_penalty_of_its_own(savedmodel, with_options):
    layer = with_options(num_mixes=2, penalty=0.1, layer_norm=True)
    for mix, parameters, gamma in zip(layer.mixes, ([1.0, 0.0, -1.0], [0.0, 2.0, 0.5]), (2.0, 0.5), strict=True):
        mix.scalar_parameters.assign(parameters)
        mix.gamma.assign(gamma)
    first, second = layer(TOKENS)
    assert_vectors(first, savedmodel, [1.0, 0.0, -1.0], 2.0, normalize=True)
    assert_vectors(second, savedmodel, [0.0, 2.0, 0.5], 0.5, normalize=True)
    np.testing.assert_allclose(layer.losses, [0.1 * 2, 0.1 * 4.25], **checks.FEW)
    assert elmo_tf.ELMo(MICRO, mix="top", penalty=0.1).losses == []
    fixed = elmo_tf.ELMo(MICRO, num_mixes=2, gamma=1.0).trainable_weights
    assert {weight.path for weight in fixed} == {"mix_0/scalar_parameters", "mix_1/scalar_parameters"}
    assert all(np.array_equal(mask, MASK) for mask in layer.compute_mask(tf.constant(TOKENS)))


def test_character_ids_give_what_their_tokens_give(plain, plain_vectors):
    ids, inputs = batch_char_ids(SENTENCES, max_length=6), keras.Input((None, 50), dtype="int32")
    vectors = plain(ids.astype(np.uint16))
    np.testing.assert_allclose(vectors, plain_vectors, **checks.TOLERANCE)
    np.testing.assert_array_equal(vectors._keras_mask, MASK)
    np.testing.assert_allclose(keras.Model(inputs, plain(inputs))(ids), plain_vectors, **checks.TOLERANCE)


def test_boundaries_are_returned_with_what_both_directions_make_of_them(savedmodel, plain_vectors):
    layer = elmo_tf.ELMo(savedmodel.path, boundaries=True)
    empty = layer(tf.constant([], tf.string, (2, 0)))  # batches of empty sentences may have no column
    assert np.asarray(empty._keras_mask).tolist() == [[True, True]] * 2
    np.testing.assert_allclose(empty, layer(tf.constant([[""], [""]]))[:, :2], **checks.TOLERANCE)
    vectors = layer(TOKENS)
    np.testing.assert_array_equal(vectors._keras_mask, np.arange(8) < np.array(LENGTHS)[:, None] + 2)
    weights = float64.weights_of(savedmodel.bilm)
    for row, sentence in enumerate(SENTENCES):
        length = len(sentence)
        np.testing.assert_allclose(vectors[row, 1 : length + 1], plain_vectors[row, :length], **checks.TOLERANCE)
        assert not np.any(vectors[row, length + 2 :])
        ids = [float64.encode(token) for token in [b"<S>", *sentence, b"</S>"]]
        tokens = float64.char_cnn(weights, MICRO.char_cnn, ids)
        ahead, _ = float64.direction(weights, MICRO, 0, ids)
        back, _ = float64.direction(weights, MICRO, 1, ids[::-1])
        layers = [np.tile(tokens, 2), *(np.concatenate([a, b[::-1]], -1) for a, b in zip(ahead, back, strict=True))]
        np.testing.assert_allclose(vectors[row, : length + 2], np.mean(layers, 0), **checks.TOLERANCE)


def test_dropout_is_of_each_mix_and_only_in_training(with_options):
    layer = with_options(num_mixes=2, dropout_rate=0.4)
    exact = np.array(layer(TOKENS)[0])
    np.testing.assert_array_equal(layer(TOKENS, training=False)[0], exact)
    first, second = (np.array(vectors) for vectors in layer(TOKENS, training=True))
    assert not np.array_equal(first, second)
    for dropped in (first, second):
        kept = dropped != 0
        assert 0.45 < kept[MASK].mean() < 0.75
        np.testing.assert_allclose(dropped[kept], exact[kept] / 0.6, **checks.TOLERANCE)


def test_character_ids_are_checked():
    ids = batch_char_ids(SENTENCES, max_length=6)[:, ::-1]  # padded on the left, as keras.utils.pad_sequences does
    with pytest.raises(tf.errors.InvalidArgumentError, match="char_ids: expected padding only after the last token"):
        elmo_tf.ELMo(MICRO).char_ids(np.ascontiguousarray(ids))


def test_under_a_mixed_policy_the_network_stays_float32_and_the_vectors_are_cast(
    with_options, plain_vectors, dtype_policy
):
    dtype_policy("mixed_bfloat16")
    layer = with_options(dropout_rate=0.1)
    vectors = layer(TOKENS)
    layer(TOKENS, training=True)
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    assert vectors.dtype == tf.bfloat16
    assert {variable.dtype for variable in layer.variables if "float" in variable.dtype} == {"float32"}
    np.testing.assert_array_equal(vectors, tf.cast(plain_vectors, tf.bfloat16))


@pytest.mark.parametrize("boundaries", [False, True])
def test_the_static_shape_is_known(boundaries):
    layer = elmo_tf.ELMo(MICRO, num_mixes=2, boundaries=boundaries)
    more = 2 * boundaries
    for time, expected in ((None, None), (6, 6 + more)):
        outputs = layer(keras.Input((time,), dtype="string"))
        assert [output.shape for output in outputs] == [(None, expected, 16)] * 2
        assert [output._keras_mask.shape for output in outputs] == [(None, expected)] * 2
    mask = TokenMask.from_config(layer.token_mask.get_config())
    assert mask.boundaries == boundaries


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": ("no.json", "no.hdf5")}, "no.json: no such file"),
        ({"mix": 3}, "mix: expected average, top, a layer from 0 to 2 or 3 finite numbers, .*, found 3"),
        ({"mix": np.zeros(2)}, r"mix: expected .*, found \[0.0, 0.0\]"),
        ({"penalty": -0.1}, "penalty: expected a number that is not negative, found -0.1"),
        ({"dropout_rate": 1.5}, "dropout_rate: expected a number from 0 to 1, 1 excluded, found 1.5"),
        ({"gamma": np.nan}, "gamma: expected a finite number, found nan"),
        ({"gamma": "x"}, "gamma: expected a finite number, found 'x'"),
        ({"num_mixes": 0}, "num_mixes: expected at least 1, found 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=f"^{message}"):
        elmo_tf.ELMo(**{"source": MICRO} | arguments)


def test_a_savedmodel_whose_weights_are_not_those_of_its_configuration_is_refused(savedmodel, tmp_path):
    other = shutil.copytree(savedmodel.path, tmp_path / "other")
    text = (other / "assets" / "config.json").read_text()
    (other / "assets" / "config.json").write_text(text.replace('"units": 24', '"units": 23'))
    checksums.write(other)
    with pytest.raises(InputError, match=r"other: the SavedModel is damaged: forward_0/kernel is float32 "):
        elmo_tf.ELMo(other)


@pytest.mark.parametrize("trainable_bilm", [False, True])
def test_a_layer_made_frozen_has_nothing_to_train(trainable_bilm):
    layer = elmo_tf.ELMo(MICRO, trainable_bilm=trainable_bilm, trainable=False)
    assert layer.trainable_variables == []
    assert [variable for variable in layer.variables if variable.trainable] == []
    assert elmo_tf.ELMo.from_config(layer.get_config()).trainable_variables == []
    layer.trainable = True
    assert len(layer.trainable_variables) == 2 + len(layer.bilm.variables) * trainable_bilm


def test_the_layer_is_made_from_its_own_configuration():
    options = {"num_mixes": 2, "mix": [1, 2, 3], "penalty": 0.5, "boundaries": True, "gamma": 2.0}
    layer = elmo_tf.ELMo(MICRO, tokenizer="whitespace", name="e", **options)
    again = elmo_tf.ELMo.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert isinstance(again.bilm, BiLM)
    assert again.bilm.config == MICRO
    assert type(elmo_tf.ELMo(MICRO, gamma=np.float32(1.5)).get_config()["gamma"]) is float  # as JSON needs
    for mix, stored in (("0.3,-0.5,1", "0.3,-0.5,1"), (np.int64(2), 2), (np.array([0.5, 0, 1]), [0.5, 0.0, 1.0])):
        assert elmo_tf.ELMo(MICRO, mix=mix).get_config()["mix"] == stored
    layer = elmo_tf.ELMo(MICRO, trainable_bilm=True)
    elmo_tf.ELMo(MICRO, name="mine")  # does not count
    number = int(layer.name.partition("_")[2] or 0)
    assert elmo_tf.ELMo(MICRO).name == f"elmo_{number + 1}"
    again = elmo_tf.ELMo.from_config(layer.get_config())
    assert isinstance(again.bilm, BiLM)


def test_each_sentence_of_a_batch_is_computed_once(with_options, monkeypatch):
    layer, computed = with_options(), []
    rows = [["a", "b", ""], ["c", "", ""], ["a", "b", ""], ["ab", "", ""], ["a\0b", "", ""], ["a", "", "b"]]
    expected, compute = layer._layers_of(tf.constant(rows)), layer._layers_of
    monkeypatch.setattr(layer, "_layers_of", lambda tokens: computed.extend(tokens.numpy().tolist()) or compute(tokens))
    np.testing.assert_allclose(layer(tf.constant(rows)), tf.reduce_mean(expected, 1), **checks.TOLERANCE)
    assert computed == [[token.encode() for token in rows[row]] for row in (0, 1, 3, 4, 5)]
