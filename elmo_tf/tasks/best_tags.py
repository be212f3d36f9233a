"""The most probable sequence of tags that a scheme allows, where each token's tags are scored by themselves."""

from collections.abc import Sequence

import numpy as np

from elmo_tf.annotated.tag_schemes import Allowed

_NEVER = -np.inf


def best_tags(scores: np.ndarray, lengths: Sequence[int], allowed: Allowed) -> list[list[int]]:
    """Returns the allowed sequence of tags with the highest sum of scores of each row, by Viterbi's algorithm.

    Steps from tag to tag have no scores here; for those of a CRF, see `elmo_tf.tasks.layers.crf.viterbi`. So a step's
    work grows with the number of tags, not with its square: most tags may follow every other one.

    Args:
        scores: `(batch, time, tags)`, logarithms of probabilities.
        lengths: each row's tokens; the rest is padding.
        allowed: which tags may begin, follow each other and end.

    Returns:
        the places of the tags, as many as the row has tokens.
    """
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths)
    num_tags = scores.shape[2]
    bound = np.flatnonzero(~allowed.steps.all(0))
    earlier = [np.flatnonzero(allowed.steps[:, tag]) for tag in bound]
    # The tags before each bound one, filled up with an additional tag that is never reached.
    before = np.full((len(bound), max([1, *map(len, earlier)])), num_tags)
    for row, tags in zip(before, earlier, strict=True):
        row[: len(tags)] = tags
    rows = np.arange(len(scores))[:, None]
    best = scores[:, 0] + np.where(allowed.begin, 0, _NEVER)
    pointers = []
    for step in range(1, scores.shape[1]):
        wide = np.pad(best, ((0, 0), (0, 1)), constant_values=_NEVER)
        pointer = np.repeat(best.argmax(1)[:, None], num_tags, 1)
        ways = wide[:, before]
        pointer[:, bound] = before[np.arange(len(bound)), ways.argmax(2)]
        here = (step < lengths)[:, None]
        pointers.append(np.where(here, pointer, np.arange(num_tags)))
        best = np.where(here, wide[rows, pointer] + scores[:, step], best)
    paths = [(best + np.where(allowed.end, 0, _NEVER)).argmax(1)]
    for pointer in reversed(pointers):
        paths.append(pointer[rows[:, 0], paths[-1]])
    found = np.stack(paths[::-1], 1)
    return [row[:length].tolist() for row, length in zip(found, lengths, strict=True)]
