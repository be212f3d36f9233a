"""The n-gram model that reading times are predicted with, against the definition in dictionaries."""

import collections
import math

import numpy as np
import pytest

from benchmarks import kneser_ney

SIZE, ORDER = 8, 3
BEGIN, END = 0, 1


def text(seed: int, sentences: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [
        [int(word) for word in random.choice(5, random.integers(0, 6), p=[0.4, 0.3, 0.15, 0.1, 0.05]) + 2]
        for _ in range(sentences)
    ]


def flat(sentences) -> np.ndarray:
    return np.array([token for sentence in sentences for token in (BEGIN, *sentence, END)])


def defined(sentences, length: int) -> collections.Counter:
    """The counts of n-grams: occurrences, or distinct words on the left."""
    whole = [(BEGIN, *sentence, END) for sentence in sentences]
    grams = [s[i : i + length] for s in whole for i in range(len(s) - length + 1)]
    if length == ORDER:
        return collections.Counter(grams)
    longer = {s[i : i + length + 1] for s in whole for i in range(len(s) - length)}
    counts = collections.Counter(gram[1:] for gram in longer)
    counts.update(gram for gram in grams if gram[0] == BEGIN and length > 1)
    return counts


def probability(counts: list[collections.Counter], context: tuple, word: int) -> float:
    shorter = probability(counts, context[1:], word) if context else None
    table = counts[len(context)]
    of_counts = [sum(value == k for value in table.values()) for k in range(5)]
    if all(of_counts[1:]):
        ratio = of_counts[1] / (of_counts[1] + 2 * of_counts[2])
        discounts = [0, *(k - (k + 1) * ratio * of_counts[k + 1] / of_counts[k] for k in (1, 2, 3))]
    else:
        discounts = [0, 0.5, 1, 1.5]
    followers = [value for gram, value in table.items() if gram[:-1] == context]
    if not followers:
        return shorter if context else 1 / (SIZE - 1)
    left = sum(discounts[min(value, 3)] for value in followers)
    count = table[(*context, word)]
    lower = shorter if context else 1 / (SIZE - 1)
    return (count - discounts[min(count, 3)] + left * lower) / sum(followers)


@pytest.mark.parametrize("sentences", [3, 60])
def test_the_probabilities_are_those_of_the_definition_and_have_a_sum_of_one(sentences):
    train, test = text(0, sentences), text(1, 20)
    counts = [defined(train, length) for length in range(1, ORDER + 1)]
    log_probs = kneser_ney.log_probs(flat(train), flat(test), SIZE, ORDER)
    expected = []
    for sentence in test:
        tokens = (BEGIN, *sentence, END)
        contexts = [tokens[max(0, position - ORDER + 1) : position] for position in range(1, len(tokens))]
        expected += [
            math.nan,
            *(math.log(probability(counts, *pair)) for pair in zip(contexts, tokens[1:], strict=True)),
        ]
        for context in contexts:
            assert sum(probability(counts, context, word) for word in range(SIZE) if word != BEGIN) == pytest.approx(1)
    np.testing.assert_allclose(log_probs, expected)
