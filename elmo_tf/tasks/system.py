"""The base class of the paper's systems: what each of them defines. See BUILD.md for what they share."""

import abc
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError
from elmo_tf.tasks.recipe import Recipe
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors, encoded, padded

# What the network reads at once: a dataclass of `elmo_tf.annotated`.
Example = Any
# What `predict` returns for a single example.
Prediction = Any


class System(abc.ABC):
    """A system: its data, its network, its loss, and how outputs become predictions and scores.

    Args:
        recipe: the system's own recipe.
        labels: the labels that it can predict, in the order of `labels_of`; empty until the training data is read.
        reading: how its files are read.
    """

    # Its name on the command line.
    name: ClassVar[str]
    # The score that chooses the epoch.
    metric: ClassVar[str]
    # Recipes by name; the first is the paper's.
    recipes: ClassVar[dict[str, Recipe]]
    # The network's inputs that are token sequences, in the order of `texts`.
    token_inputs: ClassVar[tuple[str, ...]] = ("tokens",)
    # Whether an exported system splits sentences itself; and its inputs other than texts.
    splits_sentences: ClassVar[bool] = True
    more_inputs: ClassVar[dict[str, tf.TensorSpec]] = {}
    # Whether it predicts the labels of `labels_of`.
    predicts_labels: ClassVar[bool] = True
    # The most examples that are predicted in one batch: 1 where an example is a document.
    most_predicted: ClassVar[int] = 4096

    def __init__(self, recipe: Any, labels: Sequence[str] = (), reading: Reading = DEFAULT):
        self.recipe = recipe
        self.labels = list(labels)
        self.reading = reading

    # Data.

    @abc.abstractmethod
    def read(self, path: str | os.PathLike) -> list[Any]:
        """Returns the items of a labeled file: sentences, pairs, documents. `fraction` counts these."""

    @abc.abstractmethod
    def read_unlabelled(self, path: str | os.PathLike) -> list[Example]:
        """Returns the examples of a file without labels."""

    @abc.abstractmethod
    def example_of(self, item: Any) -> Example:
        """Returns the unlabeled example for an argument of `Trained.predict`, made of lists of tokens.

        Raises:
            InputError: about `sentences`, if `item` is not such an argument.
        """

    def examples(self, items: Sequence[Any], training: bool) -> list[Example]:
        """Returns the examples of what `read` returned, for training or for evaluation."""
        return list(items)

    def drawn(self, examples: Sequence[Example], random: np.random.Generator) -> list[Example]:
        """Draws what is random in each epoch, such as a document's window, and returns the batch with it."""
        return list(examples)

    @abc.abstractmethod
    def labels_of(self, examples: Sequence[Example]) -> list[str]:
        """Returns the labels of training examples."""

    def texts(self, example: Example) -> list[Tokens]:
        """Returns the token sequences that go through `TokenVectors`; batches have examples of similar length."""
        return [getattr(example, name) for name in self.token_inputs]

    def sentences(self, examples: Sequence[Example]) -> list[str]:
        """Returns the distinct token sequences of examples, as text with spaces between the tokens, in their order."""
        texts = (encoded(tokens) for example in examples for tokens in self.texts(example))
        return list(dict.fromkeys(b" ".join(tokens).decode() for tokens in texts))

    # Network.

    @abc.abstractmethod
    def network(self, vectors: TokenVectors) -> keras.Model:
        """Returns the untrained functional model; its inputs are those of `inputs`."""

    def inputs(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """Returns the network's inputs by name, padded for this batch."""
        columns = zip(*map(self.texts, examples), strict=True)
        return {name: padded(texts) for name, texts in zip(self.token_inputs, columns, strict=True)}

    @abc.abstractmethod
    def targets(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """Returns the targets of the loss for a batch of labeled examples, by name."""

    @abc.abstractmethod
    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the loss of a batch, a scalar, without penalties."""

    # Predictions.

    @abc.abstractmethod
    def decode(self, network: keras.Model, outputs: Any) -> dict[str, tf.Tensor]:
        """Decodes the predictions of a batch from the network's outputs, in the graph."""

    def decode_together(self, networks: Sequence[keras.Model], outputs: Sequence[Any]) -> dict[str, tf.Tensor]:
        """Like `decode`, for the outputs of several networks: by the mean of their probabilities.

        Raises:
            InputError: if the system has no probabilities that several networks share.
        """
        raise InputError("workdir", f"{self.name} answers from one workdir only: each network chooses spans of its own")

    @abc.abstractmethod
    def predict(self, decoded: dict[str, np.ndarray], examples: Sequence[Example]) -> list[Prediction]:
        """Returns the prediction for each example of a batch, given what `decode` returned as arrays."""

    @abc.abstractmethod
    def scores(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
        """Returns the scores over all examples in percent, `metric` among them."""

    def notes(self, examples: Sequence[Example]) -> dict[str, str]:
        """Returns notes to show with the scores of these examples."""
        return {}

    @abc.abstractmethod
    def to_json(self, example: Example, prediction: Prediction) -> dict[str, Any]:
        """Returns what the command `predict` prints for an example."""

    # Exported systems.

    def served_inputs(self, tokens: dict[str, tf.Tensor], more: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the network's inputs for token sequences, string `(batch, time)`, and the inputs of `more_inputs`."""
        return tokens

    def served(self, decoded: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns an exported system's outputs for what `decode` returned."""
        return decoded


def mean_log_probabilities(scores: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the log of the mean of several softmax distributions over the last axis, given their scores."""
    each = tf.stack([tf.nn.log_softmax(logits) for logits in scores])
    return tf.reduce_logsumexp(each, 0) - np.log(len(scores))


def checked_tokens(item: Any) -> list[str]:
    """Returns an argument of `Trained.predict` as a sentence; `InputError` unless it is a list of tokens."""
    if isinstance(item, str) or not isinstance(item, Sequence) or not item:
        raise InputError("sentences", "lists of tokens, none of them empty", repr(item))
    if not all(isinstance(token, str) and token for token in item):
        raise InputError("sentences", "tokens that are strings, none of them empty", repr(item))
    return list(item)
