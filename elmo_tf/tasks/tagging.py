"""What the systems that give each token a tag share, and the best tags that a scheme allows."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.system import Example, System

PADDING = -1  # in place of a tag's number


class Tagger(System):
    """A system whose predictions are IOB2 tags, a list for each example; whole spans are scored."""

    metric = "f1"

    @abc.abstractmethod
    def tags_of(self, example: Example) -> list[str]:
        """Returns the tags to learn of a labelled example."""

    def labels_of(self, examples: Sequence[Example]) -> list[str]:
        return sorted({tag for one in examples for tag in self.tags_of(one)})

    def targets(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        found = np.full((len(examples), max(len(one.tokens) for one in examples)), PADDING, np.int32)
        for row, one in zip(found, examples, strict=True):
            row[: len(one.tokens)] = [numbers[tag] for tag in self.tags_of(one)]
        return {"tags": found}

    def named(self, paths: Sequence[Sequence[int]]) -> list[list[str]]:
        """Returns the tags of sequences of their numbers."""
        return [[self.labels[number] for number in path] for path in paths]

    def to_json(self, example: Example, prediction: list[str]) -> dict[str, Any]:
        spans = [span._asdict() for span in tag_schemes.spans(prediction)]
        return {"tokens": example.tokens, "tags": prediction, "spans": spans}


def best_tags(scores: np.ndarray, lengths: Sequence[int], allowed: tag_schemes.Allowed) -> list[list[int]]:
    """Returns each row's allowed sequence of tags with the highest sum of scores, by Viterbi's algorithm.

    Unlike a CRF's (`CRF.decode`), transitions have no scores, and most tags may follow every other one. So a step's
    work grows with the number of tags, not with its square.

    Args:
        scores: `(batch, time, tags)`, logarithms of probabilities.
        lengths: each row's tokens; the rest is padding.
        allowed: which tags may begin, follow each other and end.

    Returns:
        the numbers of the tags, as many as the row has tokens.
    """
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths)
    num_tags = scores.shape[2]
    bound = np.flatnonzero(~allowed.steps.all(0))  # tags that may not follow every other one
    earlier = [np.flatnonzero(allowed.steps[:, tag]) for tag in bound]
    # The tags that may come before each bound one, padded with an extra tag that is never reached.
    before = np.full((len(bound), max([1, *map(len, earlier)])), num_tags)
    for row, tags in zip(before, earlier, strict=True):
        row[: len(tags)] = tags
    rows = np.arange(len(scores))[:, None]
    best = scores[:, 0] + np.where(allowed.begin, 0, -np.inf)
    pointers = []
    for step in range(1, scores.shape[1]):
        wide = np.pad(best, ((0, 0), (0, 1)), constant_values=-np.inf)
        pointer = np.repeat(best.argmax(1)[:, None], num_tags, 1)
        ways = wide[:, before]
        pointer[:, bound] = before[np.arange(len(bound)), ways.argmax(2)]
        here = (step < lengths)[:, None]
        pointers.append(np.where(here, pointer, np.arange(num_tags)))
        best = np.where(here, wide[rows, pointer] + scores[:, step], best)
    paths = [(best + np.where(allowed.end, 0, -np.inf)).argmax(1)]
    for pointer in reversed(pointers):
        paths.append(pointer[rows[:, 0], paths[-1]])
    found = np.stack(paths[::-1], 1)
    return [row[:length].tolist() for row, length in zip(found, lengths, strict=True)]
