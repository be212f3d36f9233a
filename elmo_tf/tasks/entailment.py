"""Whether a premise entails or contradicts a hypothesis, or neither: ESIM (Peters et al. 2018, supplement A.3).

Sources of the settings: [P] the paper, [E] the ESIM of Chen et al. 2017 and its code, [A] AllenNLP 0.9's
`esim_elmo.jsonnet` for what these omit.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from elmo_tf.annotated import pairs
from elmo_tf.annotated.pairs import Pair
from elmo_tf.config import Checked, NotNegative, Positive, Rate
from elmo_tf.errors import InputError
from elmo_tf.model.sequence_pooling import SequencePooling
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Words
from elmo_tf.tasks.system import Choice, Classifier, checked_tokens
from elmo_tf.tasks.token_vectors import BiLSTM, TokenVectors


@dataclasses.dataclass(frozen=True)
class Network(Checked):
    """ESIM, the sequence model."""

    units: Positive = 300  # of each LSTM in each direction, and of the dense layers [P]
    dropout_rate: Rate = 0.5  # variational before each LSTM; plain before each dense layer of the classifier [P]
    penalty: NotNegative = 0.0001  # of the squares of all weight matrices, of the model with ELMo only [P]


@dataclasses.dataclass(frozen=True)
class EntailmentRecipe(Recipe):
    """The settings that all systems share, and ESIM's."""

    network: Network = Network()


class Task(Classifier):
    """Classifies pairs of sentences."""

    name = "entailment"
    token_inputs = ("premise", "hypothesis")
    recipes: ClassVar = {
        "paper": EntailmentRecipe(
            words=Words(dim=300, lower=False, trainable=False),  # [P]
            elmo=Elmo(place="both", penalty=0.001, layer_norm=True, dropout_rate=0.0),  # [P]; dropout [A]
            # Adam, rate, batch, clipping, halving [P]; epochs and patience [A].
            fit=Fit(batch_size=32, epochs=75, patience=5, learning_rate=0.0004, clip_norm=5.0, halve_after=1),
        ),
        "small": EntailmentRecipe(
            words=Words(dim=50, lower=True, trainable=True),
            elmo=Elmo(place="both", penalty=0.001, layer_norm=True, dropout_rate=0.3),
            fit=Fit(batch_size=32, epochs=15, patience=4, learning_rate=0.001, clip_norm=5.0, halve_after=2),
            network=Network(units=100, dropout_rate=0.2),
        ),
    }

    def read(self, path: str | os.PathLike, labeled: bool = True) -> list[Pair]:
        return pairs.read_pairs(path, self.reading, labeled)

    def example_of(self, item: Sequence[str | Sequence[str]]) -> Pair:
        if isinstance(item, str) or len(item) != 2:
            raise InputError("sentences", "pairs of premise and hypothesis, texts or lists of tokens", repr(item))
        split = self.reading.split
        premise, hypothesis = (split(part) if isinstance(part, str) else checked_tokens(part) for part in item)
        return Pair(premise, hypothesis)

    def network(self, vectors: TokenVectors) -> keras.Model:
        settings = self.recipe.network
        penalty = settings.penalty if vectors.elmo is not None else 0.0
        regularizer = keras.regularizers.L2(penalty) if penalty else None
        encoder, composer = (BiLSTM(settings.units, settings.dropout_rate, penalty) for _ in range(2))
        compare = keras.layers.Dense(settings.units, "relu", kernel_regularizer=regularizer)
        # After the attention, in the model with ELMo [P].
        compared_dropout = keras.layers.SpatialDropout1D(settings.dropout_rate if vectors.elmo is not None else 0.0)
        inputs = {name: keras.Input((None,), dtype="string", name=name) for name in self.token_inputs}
        encoded = []
        for tokens in inputs.values():
            embedded = vectors(tokens)
            encoded.append(embedded.above(encoder(embedded.below)))
        pooled = []
        for sentence, other in (encoded, encoded[::-1]):
            # Each token attends to the other sentence: softmax(X Y^T) Y.
            aligned = keras.layers.Attention()([sentence, other])
            difference = keras.layers.Subtract()([sentence, aligned])
            product = keras.layers.Multiply()([sentence, aligned])
            enhanced = keras.layers.Concatenate()([sentence, aligned, difference, product])
            pooled.append(SequencePooling(("mean", "max"))(composer(compare(compared_dropout(enhanced)))))
        hidden = keras.layers.Dropout(settings.dropout_rate)(keras.layers.Concatenate()(pooled))
        hidden = keras.layers.Dense(settings.units, "relu", kernel_regularizer=regularizer)(hidden)
        hidden = keras.layers.Dropout(settings.dropout_rate)(hidden)
        scores = keras.layers.Dense(len(self.labels), kernel_regularizer=regularizer, name="scores")(hidden)
        return keras.Model(inputs, scores)

    def to_json(self, example: Pair, prediction: Choice) -> dict[str, Any]:
        sentences = {"premise": example.premise, "hypothesis": example.hypothesis}
        return sentences | super().to_json(example, prediction)
