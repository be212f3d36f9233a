"""The n-gram model that reading times are predicted with, against numbers that the definition gave."""

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


def probabilities(train: list[list[int]], test: list[list[int]]) -> list[float]:
    """Returns the probability of each token of the sentences and of their ends; nan for their beginnings."""
    train, test = (np.array([t for s in part for t in (BEGIN, *s, END)]) for part in (train, test))
    return np.exp(kneser_ney.log_probs(train, test, SIZE, ORDER)).tolist()


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        # Too few for discounts from the counts of counts.
        (3, [np.nan, 0.264881, 0.038690, 0.098214, 0.077381, np.nan, 0.035714, 0.154762, 0.577381]),
        (60, [np.nan, 0.252103, 0.294149, 0.257585, 0.422744, np.nan, 0.054051, 0.095662, 0.075537]),
    ],
)
def test_the_probabilities_are_those_of_the_definition_and_have_a_sum_of_one(sentences, expected):
    train = text(0, sentences)
    np.testing.assert_allclose(probabilities(train, [[2, 3, 2], [6, 5]]), expected, atol=1e-6)
    for context in ([], [2], [3, 2], [6, 5]):
        tested = probabilities(train, [context, *([*context, word] for word in range(2, SIZE))])
        size = len(context)
        assert tested[size + 1] + sum(tested[2 * size + 3 :: size + 3]) == pytest.approx(1)
