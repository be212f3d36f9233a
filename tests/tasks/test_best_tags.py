"""Decoding against all sequences, one by one."""

import itertools

import numpy as np
import pytest

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.best_tags import best_tags

TAGS = {
    "IOB2": ["B-X", "B-Y", "I-X", "I-Y", "O"],
    "BIOUL": ["B-X", "I-X", "L-X", "O", "U-X", "U-Y"],
    "without a begin": ["I-Z", "O"],
}
LENGTHS = [4, 2, 0, 1, 3]


def allows(allowed, path) -> bool:
    steps = all(allowed.steps[pair] for pair in itertools.pairwise(path))
    return bool(allowed.begin[path[0]] and allowed.end[path[-1]] and steps)


@pytest.mark.parametrize("scheme", TAGS)
def test_the_best_of_all_allowed_sequences_is_found(scheme):
    tags = TAGS[scheme]
    allowed = tag_schemes.allowed(tags)
    scores = np.random.default_rng(0).normal(size=(len(LENGTHS), 4, len(tags)))
    found = best_tags(scores, LENGTHS, allowed)
    assert [len(path) for path in found] == LENGTHS
    differs = False
    for row, path, length in zip(scores, found, LENGTHS, strict=True):
        if not length:
            continue
        paths = [one for one in itertools.product(range(len(tags)), repeat=length) if allows(allowed, one)]
        assert tuple(path) == max(paths, key=lambda one, row=row: row[np.arange(len(one)), one].sum())
        differs = differs or path != row[:length].argmax(1).tolist()
    # The constraints count.
    assert differs


def test_scores_of_minus_infinity_are_no_error():
    tags = TAGS["IOB2"]
    scores = np.full((1, 3, 5), -np.inf)
    scores[0, :, [2, 4]] = 0
    assert best_tags(scores, [3], tag_schemes.allowed(tags)) == [[4, 4, 4]]
