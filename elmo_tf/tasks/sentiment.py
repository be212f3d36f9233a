"""The class of a sentence: a biattentive classification network (Peters et al. 2018, supplement A.8).

Sources of the settings: [P] the paper, [M] McCann et al. 2017, whose network it is, [A] AllenNLP 0.9's
`biattentive_classification_network_elmo.jsonnet` for what these omit.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from elmo_tf.annotated import classes, numbered_lines
from elmo_tf.annotated.classes import Classified, Tree
from elmo_tf.config import Checked, Positive, Rate
from elmo_tf.errors import InputError
from elmo_tf.model.sequence_pooling import SequencePooling
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Widths, Words
from elmo_tf.tasks.system import Choice, Classifier, checked_tokens
from elmo_tf.tasks.token_vectors import BiLSTM, TokenVectors, joined

_MIN_TRAINING_TOKENS = 4  # tokens of a training phrase [P]
# Five classes as two: the middle class is left out.
_POLARITY = {"0": "negative", "1": "negative", "3": "positive", "4": "positive"}


@dataclasses.dataclass(frozen=True)
class Network(Checked):
    """The biattentive classification network, and the number of classes of the trees."""

    units: Positive = 300  # of the layer before the biLSTMs, and of each biLSTM in each direction [M]
    dropout_rate: Rate = 0.5  # of the token vectors, with ELMo [A]
    baseline_dropout_rate: Rate = 0.25  # likewise, without ELMo [A]
    encoded_dropout_rate: Rate = 0.25  # after the layer before the biLSTMs [A]
    pooled_dropout_rate: Rate = 0.1  # [A]
    hidden: Widths = (1200, 600)  # widths of the two ReLU layers; [A] has maxout layers of these widths
    hidden_dropout_rates: tuple[Rate, ...] = (0.2, 0.3)  # of each of these layers [A]
    classes: int = 5  # 5, or 2: the trees' classes 0 and 1 against 3 and 4, without 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes not in (2, 5):
            raise InputError("classes", "2 or 5", self.classes)
        if len(self.hidden_dropout_rates) != len(self.hidden):
            problem = f"has {len(self.hidden_dropout_rates)} values, but hidden has {len(self.hidden)}"
            raise InputError("hidden_dropout_rates", problem)


@dataclasses.dataclass(frozen=True)
class SentimentRecipe(Recipe):
    """The settings that all systems share, and the biattentive network's."""

    network: Network = Network()


class Task(Classifier):
    """Classifies sentences. Given trees, it trains on all phrases of four tokens or more; scores are of sentences [P].

    The items of `read` are trees. A sentence without a tree becomes a tree whose only phrase is the sentence,
    and is trained on whatever its length.
    """

    name = "sentiment"
    recipes: ClassVar = {
        "paper": SentimentRecipe(
            words=Words(dim=300, lower=False, trainable=False),  # [M]
            elmo=Elmo(place="both", penalty=0.001, dropout_rate=0.0),  # [P]; dropout [A]
            # Adam, rate [P]; batch, epochs, patience, clipping [A].
            fit=Fit(batch_size=100, epochs=40, patience=5, learning_rate=0.0001, clip_norm=5.0),
        ),
        "small": SentimentRecipe(
            words=Words(dim=50, lower=True, trainable=True),
            elmo=Elmo(place="both", penalty=0.001, dropout_rate=0.3),
            fit=Fit(batch_size=64, epochs=6, patience=2, learning_rate=0.001, clip_norm=5.0),
            network=Network(units=100, hidden=(200, 100)),
        ),
    }

    def read(self, path: str | os.PathLike, labeled: bool = True) -> list[Tree]:
        if not classes.has_trees(path):
            return [Tree([sentence]) for sentence in classes.read_classes(path, self.reading, labeled)]
        items = classes.read_trees(path)
        if labeled and self.recipe.network.classes == 2:
            items = [polar for tree in items if (polar := _polar(tree)) is not None]
        return numbered_lines.require_nonempty(items, path, "sentence with a class")

    def is_running_text(self, path: str | os.PathLike) -> bool:
        return classes.is_running_text(path, self.reading)

    def example_of(self, item: Sequence[str]) -> Classified:
        return Classified(checked_tokens(item))

    def examples(self, items: Sequence[Tree], training: bool) -> list[Classified]:
        if not training:
            return [tree.root for tree in items]
        return [
            phrase
            for tree in items
            for phrase in tree.phrases
            if len(tree.phrases) == 1 or len(phrase.tokens) >= _MIN_TRAINING_TOKENS
        ]

    def network(self, vectors: TokenVectors) -> keras.Model:
        settings = self.recipe.network
        tokens = keras.Input((None,), dtype="string", name="tokens")
        embedded = vectors(tokens)
        rate = settings.baseline_dropout_rate if vectors.elmo is None else settings.dropout_rate
        encoded = keras.layers.Dropout(rate)(embedded.below)
        encoded = keras.layers.Dense(settings.units, "relu")(encoded)
        encoded = BiLSTM(settings.units)(keras.layers.Dropout(settings.encoded_dropout_rate)(encoded))
        if embedded.elmo_above is not None:
            # [P]: "the output ELMo vectors are computed with a second biLSTM and concatenated to the input": in our
            # reading, to that of the attention.
            encoded = joined(encoded, BiLSTM(settings.units)(embedded.elmo_above))
        # Each token attends to the whole sentence: softmax(X X^T) X.
        context = keras.layers.Attention()([encoded, encoded])
        difference = keras.layers.Subtract()([encoded, context])
        product = keras.layers.Multiply()([encoded, context])
        integrated = BiLSTM(settings.units)(keras.layers.Concatenate()([encoded, difference, product]))
        hidden = keras.layers.Dropout(settings.pooled_dropout_rate)(SequencePooling()(integrated))
        for width, rate in zip(settings.hidden, settings.hidden_dropout_rates, strict=True):
            hidden = keras.layers.Dropout(rate)(keras.layers.Dense(width, "relu")(hidden))
        return keras.Model({"tokens": tokens}, keras.layers.Dense(len(self.labels), name="scores")(hidden))

    def to_json(self, example: Classified, prediction: Choice) -> dict[str, Any]:
        return {"tokens": example.tokens} | super().to_json(example, prediction)


def _polar(tree: Tree) -> Tree | None:
    """Returns a tree of two classes; None if the sentence has neither class."""
    if tree.root.label not in _POLARITY:
        return None
    polar = ((phrase.tokens, _POLARITY.get(phrase.label or "")) for phrase in tree.phrases)
    return Tree([Classified(tokens, label) for tokens, label in polar if label is not None])
