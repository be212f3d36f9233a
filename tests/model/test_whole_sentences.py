"""Sentences through `BiLM.embed`: the plain network's values and gradients, and what is not computed."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.bilm import PlainBiLM
from elmo_tf.model.fast import BiLM
from elmo_tf.model.kernels import char_cnn
from elmo_tf.model.variables import relative_names
from tests import checks
from tests.helpers import MICRO, batch_char_ids

WORDS = [f"{letter}{number}".encode() for letter in "abc" for number in range(4)]
NASTY = [WORDS[:2], [], WORDS[2:9], [WORDS[0]] * 3, WORDS[5:6], [], WORDS[2:9], WORDS, [WORDS[0]]]


@pytest.fixture(scope="module")
def bilm():
    return checks.randomize(BiLM(MICRO), scale=0.4)


@pytest.fixture(scope="module")
def embed(bilm):
    """`bilm.embed` in a graph that knows no shapes."""
    return tf.function(bilm.embed, input_signature=[tf.TensorSpec((None, None, 50), tf.int32)])


def test_the_encoder_sees_real_tokens_only(bilm, monkeypatch):
    seen, encode = [], char_cnn.token_vectors
    monkeypatch.setattr(
        char_cnn, "token_vectors", lambda layer, ids, *rest: seen.append(len(ids)) or encode(layer, ids, *rest)
    )
    bilm(batch_char_ids(NASTY, 40))
    assert seen == [2 + sum(map(len, NASTY))]  # and the two boundaries


def test_no_shape_of_a_batch_makes_another_graph(embed):
    for sentences in (NASTY, NASTY[:1], NASTY[:2], [[]], [WORDS * 30]):
        embed(batch_char_ids(sentences))
        embed(batch_char_ids(sentences, len(sentences[0]) + 3 if sentences != NASTY else 20))
    assert embed.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("boundaries", [False, True])
def test_values_and_gradients_are_those_of_the_plain_network(bilm, boundaries):
    plain = PlainBiLM.from_weights(MICRO, relative_names(bilm))
    ids = batch_char_ids([WORDS[:2], [], [WORDS[0]] * 3, WORDS[4:8]])
    weights = np.random.default_rng(0).normal(size=(4, 3, 6 if boundaries else 4, 16)).astype(np.float32)
    layers, gradients = [], []
    for network in (bilm, plain):
        layers.append(network(ids, boundaries=boundaries))
        loss = lambda network=network: tf.reduce_sum(network(ids, boundaries=boundaries)[0] * weights)  # noqa: E731
        gradients.append(checks.gradients(network, loss))
    checks.assert_all_close(*layers, **checks.TOLERANCE)
    for gradient, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(gradient, other, **checks.gradient_tolerance(other))


def test_a_very_long_sentence_among_short_ones(embed):
    long = (WORDS * 420)[:5000]
    layers, mask = embed(batch_char_ids([WORDS[:2], long, []]))
    assert layers.shape == (3, 3, 5000, 16)
    assert np.isfinite(layers).all()
    np.testing.assert_array_equal(np.sum(mask, 1), [2, 5000, 0])
    np.testing.assert_allclose(layers[:1, :, :2], embed(batch_char_ids([WORDS[:2]]))[0], **checks.TOLERANCE)
    beginning = embed(batch_char_ids([long[:100]]))[0]
    np.testing.assert_allclose(layers[1:2, :, :100, :8], beginning[..., :8], **checks.TOLERANCE)  # forward
