"""Which spans are kept, against the rule itself."""

import numpy as np
import pytest

from elmo_tf.tasks.layers.mention_spans import best_spans


def crosses(span: tuple[int, int], other: tuple[int, int]) -> bool:
    (first, last), (begin, end) = sorted([span, other])
    return first < begin <= last < end


def expected(scores: np.ndarray, most: int) -> list[tuple[int, int]]:
    spans = [(first, first + width) for first, width in zip(*np.where(scores > -np.inf), strict=True)]
    kept: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda pair: -scores[pair[0], pair[1] - pair[0]]):
        if len(kept) < most and not any(crosses(span, other) for other in kept):
            kept.append(span)
    return sorted(kept)


def scores_of(random: np.random.Generator, words: int, max_width: int) -> np.ndarray:
    scores = random.permutation(words * max_width).reshape(words, max_width) / 10 - 1
    # A sentence ends every seven words.
    ends = (np.arange(words) // 7 + 1) * 7
    there = np.arange(words)[:, None] + np.arange(max_width) < np.minimum(ends, words)[:, None]
    return np.where(there, scores, -np.inf)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_that_do_not_cross_are_kept(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 40, 3)
    scores = [scores_of(random, size, 4) for size in sizes]
    kept = best_spans(np.concatenate(scores), np.repeat([0, 1, 4], sizes), 0.7)
    wanted, before = [], 0
    for part, size in zip(scores, sizes, strict=True):
        wanted += [(before + a, before + b) for a, b in expected(part, max(1, int(0.7 * size)))]
        before += size
    assert [(index // 4, index // 4 + index % 4) for index in kept.tolist()] == wanted
    assert kept.dtype == np.int32


def test_a_document_with_fewer_spans_than_may_be_kept_keeps_all():
    assert best_spans(np.array([[1.0, -np.inf]]), np.array([0]), 5.0).tolist() == [0]
    assert best_spans(np.zeros((0, 2)), np.zeros(0, int), 0.4).tolist() == []
