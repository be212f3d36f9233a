"""An interpolated n-gram model with modified Kneser-Ney smoothing, of text that fits in memory.

Chen and Goodman 1999, "An empirical study of smoothing techniques for language modeling", with the counts of KenLM
(Heafield et al. 2013): n-grams do not cross sentences; orders below the highest count distinct words on the left, but
those that begin a sentence count occurrences; unigrams are interpolated with the uniform distribution.

An n-gram is a number: that of its last n - 1 words, among those that occur, times the size of the vocabulary, plus the
word on their left.
"""

import itertools
from typing import NamedTuple

import numpy as np

from elmo_tf.text.vocabulary import BEGIN_ID

_PARTS = 16
_FALLBACK = (0.5, 1.0, 1.5)  # KenLM's discounts if a count of counts is 0


class Order(NamedTuple):
    """All n-grams of one length in the training text, and the test text's."""

    keys: np.ndarray  # sorted
    counts: np.ndarray  # how often each occurs
    train: np.ndarray  # number of the n-gram that ends at each position; -1: a sentence begins inside of it
    test: np.ndarray  # the same; -1 also for those that the training text has not


def log_probs(train: np.ndarray, test: np.ndarray, size: int, order: int = 5) -> np.ndarray:
    """Returns the natural logarithm of each test token's probability, float64; nan for `<S>`.

    Args:
        train, test: int `(tokens,)`, the sentences one after the other, each with `<S>` and `</S>`.
        size: of the vocabulary.
        order: the longest n-gram.
    """
    depths = [_depths(part) for part in (train, test)]
    # `<S>` is never predicted.
    probs = np.full(len(test), 1 / (size - 1))
    now, before = Order(np.arange(size), np.bincount(train, minlength=size), train, test), None
    for length in range(1, order + 1):
        following = _longer(now, length, train, test, depths, size) if length < order else None
        counts = now.counts
        if following is not None:
            begins = now.keys % size == BEGIN_ID
            counts = np.where(begins, counts, np.bincount(following.keys // size, minlength=len(counts)))
        if length == 1:
            counts[BEGIN_ID] = 0
        probs = _interpolated(probs, now, before, counts)
        now, before = following, now
    return np.where(test == BEGIN_ID, np.nan, np.log(probs))


def _depths(tokens: np.ndarray) -> np.ndarray:
    """Returns each token's position in its sentence, that of `<S>` being 0."""
    positions = np.arange(len(tokens), dtype=np.int32)
    return positions - np.maximum.accumulate(np.where(tokens == BEGIN_ID, positions, 0))


def _longer(now: Order, length: int, train, test, depths, size: int) -> Order:
    """Returns the n-grams with another word on the left."""

    def keys(numbers: np.ndarray, tokens: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = np.flatnonzero(chosen & (numbers >= 0))
        return at, numbers[at].astype(np.int64) * size + tokens[at - length]

    # Those with the first words of the vocabulary at their end have the smallest keys: a part at a time fits in memory.
    ends = np.searchsorted(np.cumsum(np.bincount(train, minlength=size)), np.arange(1, _PARTS) / _PARTS * len(train))
    types, counts, train_numbers = [], [], np.full(len(train), -1, np.int32)
    for first, end in itertools.pairwise([0, *ends + 1, size]):
        at, ngrams = keys(now.train, train, (depths[0] >= length) & (train >= first) & (train < end))
        distinct, inverse, distinct_counts = np.unique(ngrams, return_inverse=True, return_counts=True)
        train_numbers[at] = sum(map(len, types)) + inverse
        types.append(distinct)
        counts.append(distinct_counts.astype(np.int32))
    known, test_numbers = np.concatenate(types), np.full(len(test), -1, np.int32)
    at, ngrams = keys(now.test, test, depths[1] >= length)
    number = np.minimum(np.searchsorted(known, ngrams), len(known) - 1)
    test_numbers[at] = np.where(known[number] == ngrams, number, -1)
    return Order(known, np.concatenate(counts), train_numbers, test_numbers)


def _interpolated(probs: np.ndarray, now: Order, before: Order | None, counts: np.ndarray) -> np.ndarray:
    """Returns the test tokens' probabilities by one order, given those by the order before it, and its counts."""
    discounts = _discounts(counts)
    # The context of an n-gram is the shorter n-gram that ends before its last word; that of a unigram is empty.
    contexts, context_of = np.zeros(len(now.keys), np.int32), np.zeros(len(now.test), np.int64)
    if before is not None:
        inside = now.train[1:] >= 0
        contexts[now.train[1:][inside]] = before.train[:-1][inside]
        context_of = np.concatenate([[-1], before.test[:-1]])
    asked = np.unique(context_of[context_of >= 0])
    wanted = np.full(max(contexts.max(), asked.max()) + 1, -1, np.int32)
    wanted[asked] = np.arange(len(asked))
    row_of = wanted[contexts]
    inside = row_of >= 0
    rows, used = row_of[inside], counts[inside]
    totals, taken = (np.bincount(rows, weights, len(asked)) for weights in (used, discounts[np.minimum(used, 3)]))
    known = np.flatnonzero(context_of >= 0)
    known = known[totals[wanted[context_of[known]]] > 0]
    row, number = wanted[context_of[known]], now.test[known]
    own = np.where(number >= 0, counts[number], 0)
    result = probs.copy()
    result[known] = (own - discounts[np.minimum(own, 3)] + taken[row] * probs[known]) / totals[row]
    return result


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Returns what is subtracted from counts of 0, 1, 2 and more."""
    n = np.bincount(np.minimum(counts, 5), minlength=6).astype(float)
    if not n[1:5].all():
        return np.array([0, *_FALLBACK])
    ratio = n[1] / (n[1] + 2 * n[2])
    return np.array([0, *(k - (k + 1) * ratio * n[k + 1] / n[k] for k in (1, 2, 3))])
