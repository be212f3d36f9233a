"""Chooses the spans of a text to keep: the best that do not cross each other."""

import itertools

import numpy as np


def best_spans(scores: np.ndarray, documents: np.ndarray, ratio: float) -> np.ndarray:
    """Returns the kept spans as `word * max_width + width - 1`, int32 `(kept,)`, in the order of the text.

    Spans are kept by descending score until a document has `floor(ratio * words)`, at least 1. A span that crosses
    a kept span is skipped: they overlap, but neither is inside the other. `scores`, float `(words, max_width)`, are
    those of the span of each width from each word on, -inf if there is no such span; `documents`, integers `(words,)`,
    ascend.

    Reference:
        Lee et al. 2017, section 5; `extract_spans` of its code.
    """
    max_width = scores.shape[1]
    borders = np.flatnonzero(np.diff(documents, prepend=-1, append=-1))
    kept = []
    for begin, end in itertools.pairwise(borders):
        most = max(1, int(ratio * (end - begin)))
        kept.append(_best_of_document(scores[begin:end], most) + begin * max_width)
    return np.concatenate(kept or [np.zeros(0)]).astype(np.int32)


def _best_of_document(scores: np.ndarray, most: int) -> np.ndarray:
    words, max_width = scores.shape
    flat = scores.ravel()
    order = np.argsort(-flat, kind="stable")[: np.count_nonzero(flat > -np.inf)]
    # For each word: the last word of the longest kept span that begins there, the first of the longest that ends there.
    last_from, first_to = [-1] * words, list(range(words))
    kept: list[int] = []
    for span in order.tolist():
        first, width = divmod(span, max_width)
        last = first + width
        if any(last_from[word] > last for word in range(first + 1, last + 1)):
            continue
        if any(first_to[word] < first for word in range(first, last)):
            continue
        last_from[first], first_to[last] = max(last_from[first], last), min(first_to[last], first)
        kept.append(span)
        if len(kept) == most:
            break
    return np.sort(np.array(kept, np.int64))
