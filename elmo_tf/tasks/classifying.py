"""The base of the systems that classify examples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.tasks.system import Example, System, mean_log_probabilities


class Choice(NamedTuple):
    """The most probable class, and the probability of each."""

    label: str
    probabilities: dict[str, float]


class Classifier(System):
    """A system whose network returns a score for each class, float32 `(batch, classes)`."""

    metric = "accuracy"

    def labels_of(self, examples: Sequence[Example]) -> list[str]:
        return sorted({example.label for example in examples})

    def targets(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        return {"label": np.array([self.labels.index(example.label) for example in examples], np.int32)}

    def loss(self, network: keras.Model, outputs: tf.Tensor, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(targets["label"], outputs))

    def decode(self, network: keras.Model, outputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(outputs)}

    def decode_together(self, networks: Sequence[keras.Model], outputs: Sequence[tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.decode(networks[0], mean_log_probabilities(outputs))

    def predict(self, decoded: dict[str, np.ndarray], examples: Sequence[Example]) -> list[Choice]:
        rows = decoded["probabilities"]
        return [Choice(self.labels[row.argmax()], dict(zip(self.labels, row.tolist(), strict=True))) for row in rows]

    def scores(self, examples: Sequence[Example], predictions: Sequence[Choice]) -> dict[str, float]:
        right = [example.label == choice.label for example, choice in zip(examples, predictions, strict=True)]
        return {"accuracy": 100 * float(np.mean(right))}

    def to_json(self, example: Example, prediction: Choice) -> dict[str, Any]:
        probabilities = {label: round(value, 4) for label, value in prediction.probabilities.items()}
        return {"label": prediction.label, "probabilities": probabilities}

    def served(self, decoded: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `label`, string `(batch,)`, and each class's name and probability, `(batch, classes)`."""
        probabilities = decoded["probabilities"]
        classes = tf.tile(tf.constant([self.labels]), (tf.shape(probabilities)[0], 1))
        label = tf.gather(self.labels, tf.argmax(probabilities, -1))
        return {"label": label, "classes": classes, "probabilities": probabilities}
