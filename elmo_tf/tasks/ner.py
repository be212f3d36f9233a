"""Named entities, or any other spans of tokens: a biLSTM-CRF (Peters et al. 2018, supplement A.7).

Sources of what is set here: [P] the paper, [A] AllenNLP 0.9's `ner_elmo.jsonnet` for what the paper leaves open.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import extras
from elmo_tf.annotated import columns, tag_schemes
from elmo_tf.annotated.columns import Tagged
from elmo_tf.layers.token_mask import TokenMask
from elmo_tf.tasks.bilstm import BiLSTM
from elmo_tf.tasks.layers.crf import CRF
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Spelling, Words
from elmo_tf.tasks.system import System, checked_tokens
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors, padded

with extras.required():
    import seqeval.metrics

_PADDING = -1


@dataclasses.dataclass(frozen=True)
class Network:
    """The biLSTM-CRF, and which column it learns."""

    units: int = 200  # of the first biLSTM, in each direction [P]
    upper_units: int = 100  # of the second [P]
    dropout_rate: float = 0.5  # variational, of the input of both [P]; the rate is [A]'s
    column: int = -1  # of the tags in files of columns: -1 is the last, 2 CoNLL-2003's chunks


@dataclasses.dataclass(frozen=True)
class NerRecipe(Recipe):
    """All that can be set."""

    network: Network = Network()


class Task(System):
    """Tags tokens; spans are scored. Inside, tags are BIOUL [A]."""

    name = "ner"
    metric = "f1"
    recipes: ClassVar = {
        "paper": NerRecipe(
            words=Words(dim=50),  # Senna's, learned further [P]
            spelling=Spelling(filters=128, dim=16, width=3),  # [P]
            elmo=Elmo(place="input", penalty=0.1, dropout_rate=0.0),  # [P]; dropout [A]
            # Adam, rate, clipping [P]; batch, epochs, patience [A].
            fit=Fit(batch_size=64, epochs=75, patience=25, learning_rate=0.001, clip_norm=5.0),
        ),
        "small": NerRecipe(
            spelling=Spelling(filters=64),
            elmo=Elmo(place="input", penalty=0.1, dropout_rate=0.3),
            fit=Fit(batch_size=32, epochs=20, patience=5, clip_norm=5.0),
            network=Network(units=100, upper_units=50),
        ),
    }

    @classmethod
    def read(cls, path: str | os.PathLike, recipe: NerRecipe) -> list[Tagged]:
        return columns.read_columns(path, column=recipe.network.column)

    @classmethod
    def read_unlabelled(cls, path: str | os.PathLike) -> list[Tagged]:
        return columns.read_tokens(path)

    @classmethod
    def example_of(cls, item: Sequence[str]) -> Tagged:
        return Tagged(checked_tokens(item))

    @classmethod
    def labels_of(cls, examples: Sequence[Tagged]) -> list[str]:
        return sorted({tag for one in examples for tag in tag_schemes.to_bioul(one.labels or [])})

    @classmethod
    def texts(cls, example: Tagged) -> list[Tokens]:
        return [example.tokens]

    def network(self, vectors: TokenVectors) -> keras.Model:
        own = self.recipe.network
        tokens = keras.Input((None,), dtype="string", name="tokens")
        known = vectors(tokens)
        hidden = BiLSTM(own.units, own.dropout_rate)(known.below)
        hidden = BiLSTM(own.upper_units, own.dropout_rate)(known.above(hidden))
        scores = keras.layers.Dense(len(self.labels), name="scores")(hidden)
        scores = CRF(len(self.labels), boundaries=False, initializer="glorot_normal", name="crf")(scores)  # [A]
        return keras.Model({"tokens": tokens}, {"scores": scores, "mask": TokenMask()(tokens)})

    def inputs(self, examples: Sequence[Tagged]) -> dict[str, np.ndarray]:
        return {"tokens": padded([one.tokens for one in examples])}

    def targets(self, examples: Sequence[Tagged]) -> dict[str, np.ndarray]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        found = np.full((len(examples), max(len(one.tokens) for one in examples)), _PADDING, np.int32)
        for row, one in zip(found, examples, strict=True):
            row[: len(one.tokens)] = [numbers[tag] for tag in tag_schemes.to_bioul(one.labels or [])]
        return {"tags": found}

    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        # The sum over the batch, not the mean [A].
        return -tf.reduce_sum(network.get_layer("crf").log_likelihood(outputs["scores"], targets["tags"]))

    def answers(self, network: keras.Model, outputs: Any, examples: Sequence[Tagged]) -> list[list[str]]:
        allowed = tag_schemes.allowed(self.labels)
        paths = network.get_layer("crf").decode(outputs["scores"], outputs["mask"], allowed)
        tags = [[self.labels[number] for number in path] for path in paths]
        return [tag_schemes.to_iob2(one, "BIOUL") for one in tags]

    def scores(self, examples: Sequence[Tagged], answers: Sequence[list[str]]) -> dict[str, float]:
        gold = [one.labels for one in examples]
        measures = ("precision", "recall", "f1")
        return {
            name: 100 * float(getattr(seqeval.metrics, f"{name}_score")(gold, answers, zero_division=0))
            for name in measures
        }

    def to_json(self, example: Tagged, answer: list[str]) -> dict[str, Any]:
        spans = [span._asdict() for span in tag_schemes.spans(answer)]
        return {"tokens": example.tokens, "tags": answer, "spans": spans}
