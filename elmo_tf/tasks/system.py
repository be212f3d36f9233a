"""What a system of the paper has to define. Everything else is shared: see BUILD.md."""

import abc
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.tasks.recipe import Recipe
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors

# Of a system: what the network judges at once. A dataclass of `elmo_tf.annotated`.
Example = Any
# Of a system: what `answers` finds of one example.
Answer = Any


class System(abc.ABC):
    """One system: its data, its network, its loss, and how its outputs become answers and scores.

    Args:
        recipe: the system's own recipe.
        labels: what can be answered; of `labels_of`, in its order.
    """

    # As on the command line.
    name: ClassVar[str]
    # The score that chooses the epoch.
    metric: ClassVar[str]
    # Examples that are judged together at most: 1 where an example is a document.
    judged_together: ClassVar[int] = 4096
    # By name; the first is the paper's.
    recipes: ClassVar[dict[str, Recipe]]

    def __init__(self, recipe: Any, labels: Sequence[str]):
        self.recipe = recipe
        self.labels = list(labels)

    # Data.

    @classmethod
    @abc.abstractmethod
    def read(cls, path: str | os.PathLike, recipe: Any) -> list[Any]:
        """Returns what a file with labels has: sentences, pairs, documents. `fraction` counts these."""

    @classmethod
    @abc.abstractmethod
    def read_unlabelled(cls, path: str | os.PathLike) -> list[Example]:
        """Returns the examples of a file without labels."""

    @classmethod
    @abc.abstractmethod
    def example_of(cls, item: Any) -> Example:
        """Returns the example without labels that a program asks about, made of lists of tokens.

        Raises:
            InputError: about `sentences`, if it cannot be one.
        """

    @classmethod
    def examples(cls, items: Sequence[Any], training: bool) -> list[Example]:
        """Returns the examples in what `read` returned: to train on, or to judge."""
        return list(items)

    def drawn(self, examples: Sequence[Example], random: np.random.Generator) -> list[Example]:
        """Returns the examples of a training batch with what is drawn anew each time, as a window of a document is."""
        return list(examples)

    @classmethod
    @abc.abstractmethod
    def labels_of(cls, examples: Sequence[Example]) -> list[str]:
        """Returns the labels of training examples."""

    @classmethod
    @abc.abstractmethod
    def texts(cls, example: Example) -> list[Tokens]:
        """Returns the token sequences that go through `TokenVectors`; batches have examples of similar length."""

    # Network.

    @abc.abstractmethod
    def network(self, vectors: TokenVectors) -> keras.Model:
        """Returns the untrained functional model; its inputs are those of `inputs`."""

    @abc.abstractmethod
    def inputs(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """Returns the network's inputs by name, padded for this batch."""

    @abc.abstractmethod
    def targets(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """Returns what the loss needs of a batch of labelled examples, by name."""

    @abc.abstractmethod
    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the loss of a batch, a scalar, without penalties."""

    # Answers.

    @abc.abstractmethod
    def answers(self, network: keras.Model, outputs: Any, examples: Sequence[Example]) -> list[Answer]:
        """Returns the answer for each example of a batch, given the network's outputs as arrays."""

    @abc.abstractmethod
    def scores(self, examples: Sequence[Example], answers: Sequence[Answer]) -> dict[str, float]:
        """Returns the scores of all examples in percent, `metric` among them."""

    @abc.abstractmethod
    def to_json(self, example: Example, answer: Answer) -> dict[str, Any]:
        """Returns what `predict` says of an example."""


def checked_tokens(item: Any) -> list[str]:
    """Returns a sentence of a program that asks.

    Raises:
        InputError: if it is not a list of tokens.
    """
    if isinstance(item, str) or not isinstance(item, Sequence) or not item:
        raise InputError("sentences", "lists of tokens, none of them empty", repr(item))
    if not all(isinstance(token, str) and token for token in item):
        raise InputError("sentences", "tokens that are strings, none of them empty", repr(item))
    return list(item)
