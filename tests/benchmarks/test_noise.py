"""The typing errors that probes are tested with."""

import collections

import numpy as np

from benchmarks import noise
from elmo_tf.annotated.columns import Tagged


def test_an_error_is_one_of_four_kinds_and_changes_the_word():
    random, kinds = np.random.default_rng(0), collections.Counter()
    for _ in range(400):
        word = noise.misspelled("Word", random)
        assert word != "Word"
        if len(word) == 4:
            kinds["swapped" if sorted(word) == sorted("Word") else "neighbor"] += 1
        else:
            kinds["dropped" if len(word) == 3 else "doubled"] += 1
    assert min(kinds.values()) > 50 and len(kinds) == 4
    assert {noise.misspelled("a", random) for _ in range(100)} == {"aa", "s"}


def test_a_share_of_the_words_has_errors_the_same_ones_among_more():
    sentences = [Tagged(["The", "3", "dogs", "bark", "."], ["D", "N", "N", "V", "P"])] * 10
    changed, chosen = zip(*(noise.with_errors(sentences, percent, 0) for percent in (0, 10, 20)), strict=True)
    assert [int(part.sum()) for part in chosen] == [0, 3, 6]
    assert (chosen[1] <= chosen[2]).all()
    tokens = [[token for sentence in part for token in sentence.tokens] for part in (sentences, *changed)]
    for words, part in zip(tokens[1:], chosen, strict=True):
        assert [a != b for a, b in zip(tokens[0], words, strict=True)] == part.tolist()
    assert all(tokens[2][n] == tokens[3][n] for n in np.flatnonzero(chosen[1]))
    assert [sentence.labels for sentence in changed[2]] == [sentence.labels for sentence in sentences]
