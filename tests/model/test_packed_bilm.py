"""Sentences through BiLM.embed: gradients, and what is not computed."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.bilm import BiLM
from elmo_tf.model.encoder import run_directions
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
    seen, encode = [], bilm.char_cnn.call
    monkeypatch.setattr(bilm.char_cnn, "call", lambda ids: seen.append(ids.shape[0]) or encode(ids))
    bilm(batch_char_ids(NASTY, 40))
    assert seen == [2 + sum(map(len, NASTY))]  # and the two boundaries


def test_no_shape_of_a_batch_makes_another_graph(embed):
    for sentences in (NASTY, NASTY[:1], NASTY[:2], [[]], [WORDS * 30]):
        embed(batch_char_ids(sentences))
        embed(batch_char_ids(sentences, len(sentences[0]) + 3 if sentences != NASTY else 20))
    assert embed.experimental_get_tracing_count() == 1


@pytest.mark.slow
def test_gradients_are_those_of_the_sentences_one_by_one_in_training(bilm):
    """Through the packed graph, and through the dense layers whose gradient is written by hand."""
    sentences = [WORDS[:2], [], [WORDS[0]] * 3]
    ids = batch_char_ids(sentences)
    weights = np.random.default_rng(0).normal(size=(3, 3, 3, 16)).astype(np.float32)

    @tf.function
    def packed():
        return tf.reduce_sum(bilm(ids)[0] * weights)

    def one_by_one():
        total = 0.0
        for row, sentence in enumerate(sentences):
            vectors = bilm.char_cnn(batch_char_ids([[b"<S>", *sentence, b"</S>"]]))
            layers = [[functools.partial(layer, training=True) for layer in stack] for stack in bilm.lstms]
            inputs = (vectors[:, :-1], vectors[:, :0:-1])
            every, _ = run_directions(layers, inputs, bilm.zero_states(1), use_skip_connections=True)
            for number, outputs in enumerate(every):
                layers = [vectors[:, 1:-1], *(values[:, 1:][:, :: 1 if number == 0 else -1] for values in outputs)]
                there = weights[row, :, : len(sentence), number * 8 : number * 8 + 8]
                total += tf.reduce_sum(tf.concat(layers, 0) * there)
        return total

    for gradient, other in zip(*(checks.gradients(bilm, loss) for loss in (packed, one_by_one)), strict=True):
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
