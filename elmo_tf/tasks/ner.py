"""Named entities, or any other spans of tokens: a biLSTM-CRF (Peters et al. 2018, supplement A.7).

Sources of the settings: [P] the paper, [A] AllenNLP 0.9's `ner_elmo.jsonnet` for what the paper omits.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import extras
from elmo_tf.annotated import columns, named_rows, penn_trees, tag_schemes
from elmo_tf.annotated.columns import Tagged
from elmo_tf.config import Checked, Positive, Rate
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.tasks.layers.crf import CRF, viterbi
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Spelling, Words
from elmo_tf.tasks.system import Tagger, checked_tokens
from elmo_tf.tasks.token_vectors import BiLSTM, TokenVectors

with extras.explain_missing_extra():
    import seqeval.metrics


@dataclasses.dataclass(frozen=True)
class Network(Checked):
    """The biLSTM-CRF."""

    units: Positive = 200  # of the first biLSTM, in each direction [P]
    upper_units: Positive = 100  # of the second [P]
    dropout_rate: Rate = 0.5  # variational, of the input of both [P]; the rate is [A]'s


@dataclasses.dataclass(frozen=True)
class NerRecipe(Recipe):
    """The settings that all systems share, and the biLSTM-CRF's."""

    network: Network = Network()


class Task(Tagger):
    """Tags tokens. The network's tags are BIOUL [A], those of files and predictions IOB2."""

    name = "ner"
    sums_loss = True
    recipes: ClassVar = {
        "paper": NerRecipe(
            words=Words(dim=50),  # Senna's, trained further [P]
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

    def read(self, path: str | os.PathLike, labeled: bool = True) -> list[Tagged]:
        if not labeled and penn_trees.is_treebank(path):
            return [Tagged(sentence.tokens) for sentence in penn_trees.read_penn_trees(path, self.reading.strict)]
        return columns.read_columns(path, self.reading, labeled)

    def is_running_text(self, path: str | os.PathLike) -> bool:
        return not (_has_rows_or_trees(path) or columns.has_columns(path, self.reading))

    def as_conll(self, path: str | os.PathLike | None, predictions: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Yields the lines of a file with the predicted tags, and their line breaks.

        In a file of columns, they replace the tags, and nothing else changes. Other sentences become lines of a token,
        a tab and a tag.
        """
        if path is not None and not _has_rows_or_trees(path) and columns.has_columns(path, self.reading):
            yield from columns.with_tags(path, self.reading, [prediction["tags"] for prediction in predictions])
            return
        for prediction in predictions:
            for token, tag in zip(prediction["tokens"], prediction["tags"], strict=True):
                yield f"{token}\t{tag}\n"
            yield "\n"

    def example_of(self, item: Sequence[str]) -> Tagged:
        return Tagged(checked_tokens(item))

    def tags_of(self, example: Tagged) -> list[str]:
        return tag_schemes.to_bioul(example.labels or [])

    def network(self, vectors: TokenVectors) -> keras.Model:
        settings = self.recipe.network
        tokens = keras.Input((None,), dtype="string", name="tokens")
        embedded = vectors(tokens)
        hidden = BiLSTM(settings.units, settings.dropout_rate)(embedded.below)
        hidden = BiLSTM(settings.upper_units, settings.dropout_rate)(embedded.above(hidden))
        scores = keras.layers.Dense(len(self.labels), name="scores")(hidden)
        scores = CRF(self.labels, boundaries=False, initializer="glorot_normal", name="crf")(scores)  # [A]
        return keras.Model({"tokens": tokens}, {"scores": scores, "mask": TokenMask()(tokens)})

    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        # `sums_loss`: not the mean [A]
        return -tf.reduce_sum(network.get_layer("crf").log_likelihood(outputs["scores"], targets["tags"]))

    def decode(self, network: keras.Model, outputs: Any) -> dict[str, tf.Tensor]:
        return {"tags": network.get_layer("crf").decode(outputs["scores"], outputs["mask"])}

    def decode_together(self, networks: Sequence[keras.Model], outputs: Sequence[Any]) -> dict[str, tf.Tensor]:
        """Decodes the valid tags with the largest product of mean marginal probabilities."""
        marginals = [
            network.get_layer("crf").marginals(output["scores"], output["mask"])
            for network, output in zip(networks, outputs, strict=True)
        ]
        scores = tf.math.log(tf.maximum(tf.reduce_mean(tf.stack(marginals), 0), np.finfo(np.float32).tiny))
        return {"tags": viterbi(scores, outputs[0]["mask"], *self.transition_scores())}

    def scores(self, examples: Sequence[Tagged], predictions: Sequence[list[str]]) -> dict[str, float]:
        gold = [sentence.labels for sentence in examples]
        return {
            name: 100 * float(getattr(seqeval.metrics, f"{name}_score")(gold, predictions, zero_division=0))
            for name in ("precision", "recall", "f1")
        }


def _has_rows_or_trees(path: str | os.PathLike) -> bool:
    return named_rows.has_named_values(path) or penn_trees.is_treebank(path)
