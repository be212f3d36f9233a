"""Sentences through BiLM.embed: states in and out, gradients, and what is not computed."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.bilm import BiLM
from elmo_tf.model.encoder import run_directions
from tests import checks, float64
from tests.helpers import MICRO, batch_char_ids

WORDS = [f"{letter}{number}".encode() for letter in "abc" for number in range(4)]
NASTY = [WORDS[:2], [], WORDS[2:9], [WORDS[0]] * 3, WORDS[5:6], [], WORDS[2:9], WORDS, [WORDS[0]]]


@pytest.fixture(scope="module")
def bilm():
    return checks.randomize(BiLM(MICRO), scale=0.4)


@pytest.fixture(scope="module")
def embed(bilm):
    """`bilm.embed` in a graph that knows no shapes."""
    states = tf.nest.map_structure(lambda state: tf.TensorSpec((None, state.shape[1])), bilm.zero_states(1))
    signature = [tf.TensorSpec((None, None, 50), tf.int32), states]
    return tf.function(bilm.embed, input_signature=signature)


def _states(rows: int, seed: int = 0):
    """States that are not zero."""
    random = np.random.default_rng(seed)
    sizes = BiLM(MICRO).zero_states(rows)
    return tf.nest.map_structure(lambda state: tf.constant(random.uniform(-0.5, 0.5, state.shape), tf.float32), sizes)


def _assert_equal(actual, expected):
    checks.assert_all_close(tf.nest.flatten(actual), tf.nest.flatten(expected), **checks.TOLERANCE)


def _row(states, row: int):
    return tf.nest.map_structure(lambda state: state[row : row + 1], states)


def test_a_sentence_and_its_states_do_not_depend_on_the_batch(embed):
    states = _states(len(NASTY))
    layers, _, after = embed(batch_char_ids(NASTY, 15), states)
    for row, sentence in enumerate(NASTY):
        alone, _, alone_after = embed(batch_char_ids([sentence]), _row(states, row))
        np.testing.assert_allclose(layers[row, :, : len(sentence)], alone[0], **checks.TOLERANCE)
        assert not np.any(layers[row, :, len(sentence) :])
        _assert_equal(_row(after, row), alone_after)


def test_a_sentence_without_tokens_leaves_the_states_as_they_were(embed):
    states = _states(len(NASTY))
    _, _, after = embed(batch_char_ids(NASTY), states)
    for row, sentence in enumerate(NASTY):
        changed = [np.any(new != old) for new, old in zip(*map(tf.nest.flatten, (after, states)), strict=True)]
        assert all(changed)
        if not sentence:
            tf.nest.map_structure(np.testing.assert_array_equal, _row(after, row), _row(states, row))


def test_one_row_of_states_is_every_sentences(embed):
    single = _states(1)
    every = tf.nest.map_structure(lambda state: tf.repeat(state, len(NASTY), 0), single)
    ids = batch_char_ids(NASTY)
    _assert_equal(embed(ids, single), embed(ids, every))


def test_carried_states_are_those_of_training(bilm, embed):
    """Forward `<S> w1 .. wn <S> ..`, backward `</S> wn .. w1 </S> ..`: one stream of both sentences."""
    first, second = NASTY[2], NASTY[7]
    outputs, states = [], bilm.zero_states(1)
    for sentence in (first, second):
        layers, _, states = embed(batch_char_ids([sentence]), states)
        outputs.append(layers[0])
    weights = float64.weights_of(bilm)
    for number, mark in enumerate((b"<S>", b"</S>")):
        parts = [[mark, *sentence[:: 1 if number == 0 else -1]] for sentence in (first, second)]
        ids = [float64.encode(word) for part in parts for word in part]
        expected, after = float64.direction(weights, MICRO, number, ids)
        for sentence, layers, start in ((first, outputs[0], 1), (second, outputs[1], len(first) + 2)):
            half = layers[1:, :, number * 8 : number * 8 + 8]
            for values, stream in zip(half, expected, strict=True):
                there = stream[start : start + len(sentence)][:: 1 if number == 0 else -1]
                np.testing.assert_allclose(values, there, **checks.TOLERANCE)
        for state, wanted in zip(tf.nest.flatten(states[number]), tf.nest.flatten(after), strict=True):
            np.testing.assert_allclose(state[0], wanted, **checks.TOLERANCE)


def test_the_encoder_sees_real_tokens_only(bilm, monkeypatch):
    seen, encode = [], bilm.char_cnn.call
    monkeypatch.setattr(bilm.char_cnn, "call", lambda ids: seen.append(ids.shape[0]) or encode(ids))
    bilm(batch_char_ids(NASTY, 40))
    assert seen == [2 + sum(map(len, NASTY))]  # and the two boundaries


def test_no_shape_of_a_batch_makes_another_graph(embed):
    for sentences in (NASTY, NASTY[:1], NASTY[:2], [[]], [WORDS * 30]):
        embed(batch_char_ids(sentences), _states(len(sentences)))
        embed(batch_char_ids(sentences, len(sentences[0]) + 3 if sentences != NASTY else 20), _states(1))
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
    layers, mask, _ = embed(batch_char_ids([WORDS[:2], long, []]), _states(1))
    assert layers.shape == (3, 3, 5000, 16)
    assert np.isfinite(layers).all()
    np.testing.assert_array_equal(np.sum(mask, 1), [2, 5000, 0])
    np.testing.assert_allclose(layers[:1, :, :2], embed(batch_char_ids([WORDS[:2]]), _states(1))[0], **checks.TOLERANCE)
    beginning = embed(batch_char_ids([long[:100]]), _states(1))[0]
    np.testing.assert_allclose(layers[1:2, :, :100, :8], beginning[..., :8], **checks.TOLERANCE)  # forward
