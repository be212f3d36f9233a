"""What the systems that give each token a tag share."""

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
