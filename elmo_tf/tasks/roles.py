"""Who does what to whom: the roles of a predicate's arguments, by interleaved highway LSTMs (supplement A.5).

Sources of the settings: [P] Peters et al. 2018, [S] He et al. 2017, whose system it is, and its code deep_srl,
[A] AllenNLP 0.9's `semantic_role_labeler_elmo.jsonnet` for what these omit. Where paper and code differ, as on
clipping, we follow the paper.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated import frames
from elmo_tf.annotated.frames import Frame
from elmo_tf.config import Checked, Positive, Rate
from elmo_tf.errors import InputError
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.tasks.layers.crf import viterbi
from elmo_tf.tasks.layers.lstms import HighwayLSTM
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Words
from elmo_tf.tasks.scores import srl_eval
from elmo_tf.tasks.scores.f1 import Counts
from elmo_tf.tasks.system import PADDING, Tagger, checked_tokens, mean_log_probabilities
from elmo_tf.tasks.token_vectors import TokenVectors, joined

_MAX_TRAINING_TOKENS = 100  # tokens of a training sentence [S]
# The predicate's feature.
_NO_TOKEN, _TOKEN, _PREDICATE = range(3)
_SCORED = 100  # labels with fewer gold arguments are not scored separately


@dataclasses.dataclass(frozen=True)
class Network(Checked):
    """Stacked highway LSTMs in alternating directions."""

    layers: Positive = 8  # [P]
    units: Positive = 300  # of each [P]
    dropout_rate: Rate = 0.1  # variational, of each layer's output, which is also its recurrent state [P, S]
    predicate_dim: Positive = 100  # of the vector that says whether a token is the predicate [P]


@dataclasses.dataclass(frozen=True)
class RolesRecipe(Recipe):
    """The settings that all systems share, and those of the highway LSTMs."""

    network: Network = Network()


class Task(Tagger):
    """Tags the tokens of a sentence with their roles for a given predicate.

    The items of `read` are sentences, lists of frames.
    """

    name = "roles"
    extra_inputs: ClassVar = {"predicate": tf.TensorSpec((None,), tf.int32, name="predicate")}
    recipes: ClassVar = {
        "paper": RolesRecipe(
            words=Words(dim=100, lower=True, trainable=True),  # [P]; lower case [S]
            elmo=Elmo(place="input", penalty=0.001, dropout_rate=0.1),  # [P], its table 2; dropout [A]
            # Adadelta, rate, clipping, epochs, patience [P]; epsilon and batch [S].
            fit=Fit(80, 500, 200, optimizer="adadelta", learning_rate=1.0, epsilon=1e-6, clip_value=1.0),
        ),
        "small": RolesRecipe(
            words=Words(dim=100),
            elmo=Elmo(place="input", penalty=0.001, dropout_rate=0.3),
            # The rate decays by steps, because with little data the score is 0 for the first epochs.
            fit=Fit(64, 12, 4, learning_rate=0.002, clip_norm=5.0, decay_rate=0.5, decay_steps=2000),
            network=Network(layers=4, units=128, predicate_dim=20),
        ),
    }

    read = staticmethod(frames.read_frames)

    def example_of(self, item: tuple[Sequence[str], int]) -> Frame:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            expected = "pairs of a sentence, a list of tokens, and the index of a predicate"
            raise InputError("sentences", expected, repr(item))
        return frames.checked_frame(checked_tokens(item[0]), item[1], None, functools.partial(InputError, "sentences"))

    def examples(self, items: Sequence[list[Frame]], training: bool) -> list[Frame]:
        return [
            frame
            for sentence in items
            for frame in sentence
            if not training or len(frame.tokens) <= _MAX_TRAINING_TOKENS
        ]

    def tags_of(self, example: Frame) -> list[str]:
        return example.tags or []

    def network(self, vectors: TokenVectors) -> keras.Model:
        settings = self.recipe.network
        tokens = keras.Input((None,), dtype="string", name="tokens")
        predicate = keras.Input((None,), dtype="int32", name="predicate")
        embedded = vectors(tokens)
        initial = keras.initializers.RandomNormal(stddev=0.01)  # [S]
        feature = keras.layers.Embedding(3, settings.predicate_dim, initial, mask_zero=True, name="predicate_vectors")
        hidden = joined(embedded.below, feature(predicate))
        for number in range(settings.layers):
            hidden = HighwayLSTM(settings.units, settings.dropout_rate, go_backwards=number % 2 == 1)(hidden)
        # The stack is this system's lowest biLSTM: ELMo at the output is joined to the last layer.
        scores = keras.layers.Dense(len(self.labels), kernel_initializer="orthogonal", name="scores")  # [P]
        outputs = {"scores": scores(embedded.above(hidden)), "mask": TokenMask()(tokens)}
        return keras.Model({"tokens": tokens, "predicate": predicate}, outputs)

    def inputs(self, examples: Sequence[Frame]) -> dict[str, np.ndarray]:
        inputs = super().inputs(examples)
        predicate = np.where(inputs["tokens"] == b"", _NO_TOKEN, _TOKEN).astype(np.int32)
        predicate[range(len(examples)), [frame.predicate for frame in examples]] = _PREDICATE
        return inputs | {"predicate": predicate}

    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        # The sum over the tokens, the mean over the frames [S].
        tags = targets["tags"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(tags, 0), outputs["scores"])
        return tf.reduce_mean(tf.reduce_sum(tf.where(tags == PADDING, 0.0, losses), 1))

    def decode(self, network: keras.Model, outputs: Any) -> dict[str, tf.Tensor]:
        # Scores are log probabilities plus a constant for each token, which is the same for all paths [S].
        # Unlike in [S], no sentence begins with an I-.
        return {"tags": viterbi(outputs["scores"], outputs["mask"], *self.transition_scores())}

    def decode_together(self, networks: Sequence[keras.Model], outputs: Sequence[Any]) -> dict[str, tf.Tensor]:
        scores = mean_log_probabilities([output["scores"] for output in outputs])
        return self.decode(networks[0], outputs[0] | {"scores": scores})

    def scores(self, examples: Sequence[Frame], predictions: Sequence[list[str]]) -> dict[str, float]:
        counts = self.by_label(examples, predictions)
        frequent = {label: count.f1 for label, count in counts.items() if count.gold >= _SCORED}
        return sum(counts.values(), Counts()).scores() | frequent

    def by_label(self, examples: Sequence[Frame], predictions: Sequence[list[str]]) -> dict[str, Counts]:
        return srl_eval.by_label(map(self.tags_of, examples), predictions)

    def to_json(self, example: Frame, prediction: list[str]) -> dict[str, Any]:
        return {"tokens": example.tokens, "predicate": example.predicate} | super().to_json(example, prediction)

    def served_inputs(self, tokens: dict[str, tf.Tensor], extra: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        index, lengths = extra["predicate"], tf.reduce_sum(tf.cast(tokens["tokens"] != "", tf.int32), 1)
        is_inside = tf.reduce_all((index >= 0) & (index < tf.maximum(lengths, 1)))
        message = "predicate: expected the index of a token of each sentence, counted from 0, found"
        with tf.control_dependencies([tf.debugging.Assert(is_inside, [message, index])]):
            is_predicate = tf.range(tf.shape(tokens["tokens"])[1]) == tf.identity(index)[:, None]
        feature = tf.where(is_predicate, _PREDICATE, tf.where(tokens["tokens"] == "", _NO_TOKEN, _TOKEN))
        return tokens | {"predicate": feature}
