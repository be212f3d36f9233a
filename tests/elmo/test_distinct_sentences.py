"""Sentences that a batch has more than once."""

import numpy as np
import tensorflow as tf

from elmo_tf.elmo.distinct_sentences import of_distinct

TOKENS = [
    ["a", "b", ""],
    ["c", "", ""],
    ["a", "b", ""],
    ["ab", "", ""],
    ["a\0b", "", ""],
    ["a", "", "b"],
    ["c", "", ""],
]


def test_each_sentence_of_a_batch_is_computed_once_and_all_have_its_rows():
    computed = []

    def compute(tokens):
        computed.extend(tokens.numpy().tolist())
        return tf.strings.length(tokens) + 10 * tf.range(tf.shape(tokens)[0])[:, None]

    found = of_distinct(compute, tf.constant(TOKENS))
    assert computed == [[token.encode() for token in TOKENS[place]] for place in (0, 1, 3, 4, 5)]
    numbers = [0, 1, 0, 2, 3, 4, 1]
    lengths = np.array([[len(token) for token in row] for row in TOKENS])
    np.testing.assert_array_equal(found, lengths + 10 * np.array(numbers)[:, None])


def test_a_batch_without_sentences_stays_empty():
    found = of_distinct(lambda tokens: tf.zeros((tf.shape(tokens)[0], 2)), tf.zeros((0, 3), tf.string))
    assert found.shape == (0, 2)
