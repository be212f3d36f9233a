"""Base classes of the paper's systems: what each must define, and what taggers and classifiers share."""

import abc
import collections
import os
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated import tag_schemes
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError
from elmo_tf.tasks.recipe import Recipe
from elmo_tf.tasks.scores import f1
from elmo_tf.tasks.scores.f1 import Counts
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors, padded

Example = Any  # one input of the network: a dataclass of `elmo_tf.annotated`
Prediction = Any  # the result of `predict` for a single example
PADDING = -1  # a tag's number at padding


class System(abc.ABC):
    """A system: its data, its network, its loss, and how outputs become predictions and scores.

    Args:
        recipe: the system's own recipe.
        labels: the labels that it can predict, in the order of `labels_of`; empty until the training data is read.
        reading: how its files are read.
    """

    name: ClassVar[str]  # on the command line
    metric: ClassVar[str]  # the score that chooses the epoch
    recipes: ClassVar[dict[str, Recipe]]  # by name; the first is the paper's
    sums_loss: ClassVar[bool] = False  # whether `loss` is the sum over a batch
    token_inputs: ClassVar[tuple[str, ...]] = ("tokens",)  # inputs that are token sequences, in the order of `texts`
    splits_sentences: ClassVar[bool] = True  # whether an exported system splits sentences itself
    extra_inputs: ClassVar[dict[str, tf.TensorSpec]] = {}  # an exported system's inputs other than texts
    predicts_labels: ClassVar[bool] = True  # whether it predicts the labels of `labels_of`
    prediction_batch_size: ClassVar[int] = 4096  # examples in a batch of prediction; 1 where an example is a document

    def __init__(self, recipe: Any, labels: Sequence[str] = (), reading: Reading = DEFAULT):
        self.recipe = recipe
        self.labels = list(labels)
        self.reading = reading

    @classmethod
    def paper_recipe(cls) -> Recipe:
        """Returns the recipe of the paper."""
        return next(iter(cls.recipes.values()))

    # Data.

    @abc.abstractmethod
    def read(self, path: str | os.PathLike, labeled: bool = True) -> list[Any]:
        """Returns the items of a file: sentences, pairs, documents. `fraction` counts these."""

    def read_unlabeled(self, path: str | os.PathLike) -> list[Example]:
        """Returns the examples of a file whose labels, if it has any, are ignored."""
        return self.examples(self.read(path, labeled=False), training=False)

    def is_running_text(self, path: str | os.PathLike) -> bool:
        """Whether a file without labels has a sentence per line that is not split into tokens."""
        return False

    @abc.abstractmethod
    def example_of(self, item: Any) -> Example:
        """Returns the unlabeled example for an item of `Trained.predict`, made of lists of tokens.

        Raises:
            InputError: about `sentences`, if `item` is invalid.
        """

    def examples(self, items: Sequence[Any], training: bool) -> list[Example]:
        """Returns the examples of items from `read`, for training or for evaluation."""
        return list(items)

    def resample(self, examples: Sequence[Example], random: np.random.Generator) -> list[Example]:
        """Applies per-epoch sampling to a batch, such as a random window of each document."""
        return list(examples)

    @abc.abstractmethod
    def labels_of(self, examples: Sequence[Example]) -> list[str]:
        """Returns the labels of training examples."""

    def texts(self, example: Example) -> list[Tokens]:
        """Returns the token sequences that go through `TokenVectors`; batches have examples of similar length."""
        return [getattr(example, name) for name in self.token_inputs]

    def has_tokens(self, example: Example) -> bool:
        """Whether no token sequence of an example is empty."""
        return all(self.texts(example))

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

    def num_examples(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns how many examples a batch has, a float32 scalar."""
        return tf.cast(tf.shape(next(iter(inputs.values())))[0], tf.float32)

    @abc.abstractmethod
    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the loss of a batch, a scalar, without penalties: its examples' mean, or their sum if `sums_loss`."""

    # Predictions.

    @abc.abstractmethod
    def decode(self, network: keras.Model, outputs: Any) -> dict[str, tf.Tensor]:
        """Decodes the predictions of a batch from the network's outputs, in the graph."""

    def decode_together(self, networks: Sequence[keras.Model], outputs: Sequence[Any]) -> dict[str, tf.Tensor]:
        """Like `decode`, for the outputs of several networks: by the mean of their probabilities.

        Raises:
            InputError: if the system has no probabilities that several networks share.
        """
        problem = f"{self.name} cannot be ensembled, because each network selects different spans; give one workdir"
        raise InputError("workdir", problem)

    @abc.abstractmethod
    def predict(self, decoded: dict[str, np.ndarray], examples: Sequence[Example]) -> list[Prediction]:
        """Returns the prediction for each example of a batch, given the result of `decode` as arrays."""

    def empty_prediction(self) -> Prediction:
        """Returns the prediction for an example without tokens, which no network can read."""
        return None

    @abc.abstractmethod
    def scores(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
        """Returns the scores over all examples in percent, `metric` among them."""

    def by_label(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, Counts]:
        """Returns the counts of each type or class; empty for a system that has none."""
        return {}

    def most_frequent(self, examples: Sequence[Example]) -> dict[str, Any]:
        """Returns the most frequent `answer` of all examples, and the score, by its name, of always giving that.

        Empty for a system whose answers are not comparable.
        """
        return {}

    def notes(self, examples: Sequence[Example]) -> dict[str, str]:
        """Returns extra entries for the results, such as the unit of F1."""
        return {}

    @abc.abstractmethod
    def to_json(self, example: Example, prediction: Prediction) -> dict[str, Any]:
        """Returns the output of the command `predict` for an example."""

    # Exported systems.

    def served_inputs(self, tokens: dict[str, tf.Tensor], extra: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the network's inputs for token sequences, string `(batch, time)`, and those of `extra_inputs`."""
        return tokens

    def served(self, decoded: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns an exported system's outputs, given the result of `decode`."""
        return decoded


class Choice(NamedTuple):
    """The most probable class, and each class's probability; None and empty for a sentence without tokens."""

    label: str | None
    probabilities: dict[str, float]


class Classifier(System):
    """A system whose network returns a score for each class, float32 `(batch, classes)`."""

    metric = "accuracy"

    def empty_prediction(self) -> Choice:
        return Choice(None, {})

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

    def by_label(self, examples: Sequence[Example], predictions: Sequence[Choice]) -> dict[str, Counts]:
        gold, predicted = (
            [[(item.label, None)] if item.label else [] for item in items] for items in (examples, predictions)
        )
        return f1.by_label(gold, predicted)

    def most_frequent(self, examples: Sequence[Example]) -> dict[str, Any]:
        label = most_common(example.label for example in examples)
        return {"answer": label} | self.scores(examples, [Choice(label, {})] * len(examples))

    def confusion(self, examples: Sequence[Example], predictions: Sequence[Choice]) -> dict[str, dict[str, int]]:
        """Returns for each gold class how often each class was predicted."""
        pairs = collections.Counter(
            (example.label, choice.label) for example, choice in zip(examples, predictions, strict=True)
        )
        labels = sorted({label for pair in pairs for label in pair if label})
        return {gold: {label: pairs[gold, label] for label in labels} for gold in labels}

    def to_json(self, example: Example, prediction: Choice) -> dict[str, Any]:
        probabilities = {label: round(value, 4) for label, value in prediction.probabilities.items()}
        return {"label": prediction.label, "probabilities": probabilities}

    def served(self, decoded: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `label`, string `(batch,)`, and each class's name and probability, `(batch, classes)`."""
        probabilities = decoded["probabilities"]
        classes = tf.tile(tf.constant([self.labels]), (tf.shape(probabilities)[0], 1))
        label = tf.gather(self.labels, tf.argmax(probabilities, -1))
        return {"label": label, "classes": classes, "probabilities": probabilities}


class Tagger(System):
    """A system whose predictions are IOB2 tags, a list for each example; whole spans are scored."""

    metric = "f1"

    def empty_prediction(self) -> list[str]:
        return []

    @abc.abstractmethod
    def tags_of(self, example: Example) -> list[str]:
        """Returns the tags of a labeled example, which the network learns."""

    def transition_scores(self) -> list[tf.Tensor]:
        """Returns begin, transitions and end for `viterbi`: 0 if the tag scheme allows them, else -inf."""
        return [tf.constant(np.where(may, 0.0, -np.inf)) for may in tag_schemes.allowed(self.labels)]

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

    def by_label(self, examples: Sequence[Example], predictions: Sequence[list[str]]) -> dict[str, Counts]:
        tags = [tag_schemes.as_iob2(self.tags_of(example)) for example in examples]
        gold, predicted = ([_items(row) for row in rows] for rows in (tags, predictions))
        return f1.by_label(gold, predicted)

    def most_frequent(self, examples: Sequence[Example]) -> dict[str, Any]:
        outside = self.scores(examples, [["O"] * len(self.tags_of(example)) for example in examples])
        return {"answer": "O", self.metric: outside[self.metric]}

    def to_json(self, example: Example, prediction: list[str]) -> dict[str, Any]:
        spans = [span._asdict() for span in tag_schemes.spans(prediction)]
        return {"tokens": example.tokens, "tags": prediction, "spans": spans}

    def served(self, decoded: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `tags`, string `(batch, time)`, and the spans of each sentence, padded: `spans`, `kinds`."""
        numbers = decoded["tags"]
        tags = tf.gather(["", *tag_schemes.as_iob2(self.labels)], numbers + 1)
        inside = tf.strings.regex_full_match(tags, "I-.*")
        continues_next = tf.pad(inside[:, 1:], ((0, 0), (0, 1)))
        starts = tf.where(tf.strings.regex_full_match(tags, "B-.*"))
        # In IOB2, ends match starts in number and order.
        ends = tf.where((numbers >= 0) & (tags != "O") & ~continues_next)
        spans = tf.cast(tf.stack([starts[:, 1], ends[:, 1] + 1], 1), tf.int32)
        kinds = tf.strings.substr(tf.gather_nd(tags, starts), 2, 2**31 - 1)
        rows = {"value_rowids": starts[:, 0], "nrows": tf.shape(tags, tf.int64)[0]}
        by_row = {"spans": tf.RaggedTensor.from_value_rowids(spans, **rows).to_tensor()}
        return {"tags": tags, "kinds": tf.RaggedTensor.from_value_rowids(kinds, **rows).to_tensor()} | by_row


def most_common(answers: Iterable[str]) -> str:
    """Returns the most frequent answer; ties go to the first in alphabetical order."""
    counts = collections.Counter(answers)
    return min(counts, key=lambda answer: (-counts[answer], answer))


def _items(tags: Sequence[str]) -> list[tuple[str, tuple[int, int]]]:
    """Returns the spans of a sentence's IOB2 tags as items for `f1.by_label`."""
    return [(kind, (start, end)) for start, end, kind in tag_schemes.spans(tags)]


def mean_log_probabilities(scores: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the log of the mean of several softmax distributions over the last axis, given their scores."""
    log_probabilities = tf.stack([tf.nn.log_softmax(logits) for logits in scores])
    return tf.reduce_logsumexp(log_probabilities, 0) - np.log(len(scores))


def checked_tokens(item: Any) -> list[str]:
    """Returns an item of `Trained.predict` as a sentence; `InputError` unless it is a list of tokens."""
    if isinstance(item, str) or not isinstance(item, Sequence):
        raise InputError("sentences", "lists of tokens", repr(item))
    if not all(isinstance(token, str) and token for token in item):
        raise InputError("sentences", "tokens that are nonempty strings", repr(item))
    return list(item)
