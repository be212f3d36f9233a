"""The base of the systems that tag tokens."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.system import Example, System

PADDING = -1  # a tag's number at padding


class Tagger(System):
    """A system whose predictions are IOB2 tags, a list for each example; whole spans are scored."""

    metric = "f1"

    @abc.abstractmethod
    def tags_of(self, example: Example) -> list[str]:
        """Returns the tags of a labeled example, which the network learns."""

    def labels_of(self, examples: Sequence[Example]) -> list[str]:
        return sorted({tag for example in examples for tag in self.tags_of(example)})

    def targets(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        tags = np.full((len(examples), max(len(example.tokens) for example in examples)), PADDING, np.int32)
        for row, example in zip(tags, examples, strict=True):
            row[: len(example.tokens)] = [numbers[tag] for tag in self.tags_of(example)]
        return {"tags": tags}

    def predict(self, decoded: dict[str, np.ndarray], examples: Sequence[Example]) -> list[list[str]]:
        names = tag_schemes.as_iob2(self.labels)
        return [[names[number] for number in row if number != PADDING] for row in decoded["tags"]]

    def to_json(self, example: Example, prediction: list[str]) -> dict[str, Any]:
        spans = [span._asdict() for span in tag_schemes.spans(prediction)]
        return {"tokens": example.tokens, "tags": prediction, "spans": spans}

    def served(self, decoded: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `tags`, string `(batch, time)`, and the spans of each sentence, padded: `spans`, `kinds`."""
        numbers = decoded["tags"]
        tags = tf.gather(["", *tag_schemes.as_iob2(self.labels)], numbers + 1)
        inside = tf.strings.regex_full_match(tags, "I-.*")
        behind = tf.pad(inside[:, 1:], ((0, 0), (0, 1)))
        starts = tf.where(tf.strings.regex_full_match(tags, "B-.*"))
        # In IOB2, there are as many ends as starts, in the same order.
        ends = tf.where((numbers >= 0) & (tags != "O") & ~behind)
        spans = tf.cast(tf.stack([starts[:, 1], ends[:, 1] + 1], 1), tf.int32)
        kinds = tf.strings.substr(tf.gather_nd(tags, starts), 2, 2**31 - 1)
        rows = {"value_rowids": starts[:, 0], "nrows": tf.shape(tags, tf.int64)[0]}
        by_row = {"spans": tf.RaggedTensor.from_value_rowids(spans, **rows).to_tensor()}
        return {"tags": tags, "kinds": tf.RaggedTensor.from_value_rowids(kinds, **rows).to_tensor()} | by_row
