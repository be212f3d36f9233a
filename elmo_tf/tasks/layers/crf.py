"""A linear-chain conditional random field: scores of whole label sequences, their loss and their decoding."""

import logging
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated import tag_schemes
from elmo_tf.errors import InputError
from elmo_tf.model.operations import real_positions

_log = logging.getLogger("elmo_tf")


@keras.saving.register_keras_serializable("elmo_tf")
class CRF(keras.layers.Layer):
    """Scores label sequences: each token's own scores, transitions between labels, the first and the last label.

    The last layer of a tagger. It returns its inputs and holds the weights that its loss and its decoding use:

        crf = elmo_tf.CRF(tags)
        outputs = crf(keras.layers.Dense(len(tags))(hidden))
        model.compile("adam", loss=crf.loss, metrics=[crf.accuracy])

    Targets are integers `(batch, time)`. Positions excluded by the Keras mask, or with target -1, do not count;
    real positions come first in each row.

    Args:
        labels: the labels, or their number. If they are tags of IOB2 or BIOUL (BIOES), such as `B-PER`, only
            sequences that the scheme allows are decoded. Tags of IOB1, where an `I-` may have no `B-` of its kind, are
            decoded freely, with a warning.
        boundaries: whether the first and the last label have separate scores.
        initializer: of the transitions.

    Call arguments:
        scores: float `(batch, time, labels)`, each token's own, with or without a Keras mask.
        decode: whether to return the best labels instead.

    Returns:
        the scores, float32 under a mixed precision policy too; or the best labels, int32 `(batch, time)`, -1 at
        padding.

    Reference:
        Lafferty et al. 2001; Lample et al. 2016, section 2.2, for the use above a BiLSTM.
    """

    def __init__(self, labels: int | Sequence[str], boundaries: bool = True, initializer: str = "zeros", **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.labels = int(labels) if isinstance(labels, int | np.integer) else list(labels)
        self.num_labels = self.labels if isinstance(self.labels, int) else len(self.labels)
        if self.num_labels < 1 or isinstance(labels, str):
            raise InputError("labels", "at least one label, or their number", repr(labels))
        self.boundaries = boundaries
        self.initializer = initializer
        self.supports_masking = True
        names = self.labels if isinstance(self.labels, list) else [""]
        self._allowed = None
        if all(map(tag_schemes.is_tag, names)):
            if unopened := tag_schemes.unopened(names):
                _log.warning("CRF: label %s without B-%s, as in IOB1: any sequence is decoded", unopened, unopened[2:])
            else:
                self._allowed = tag_schemes.allowed(names)

    def build(self, scores_shape):
        if scores_shape is not None and scores_shape[-1] != self.num_labels:
            raise InputError("scores", f"{self.num_labels} for each token, one for each label", scores_shape[-1])
        square = (self.num_labels, self.num_labels)
        self.transitions = self.add_weight(name="transitions", shape=square, initializer=self.initializer)  # from, to
        ends = {"shape": (self.num_labels,), "initializer": "zeros", "trainable": self.boundaries}
        self.begin = self.add_weight(name="begin", **ends)
        self.end = self.add_weight(name="end", **ends)

    def call(self, scores, mask=None, decode=False):
        if decode:
            return self.decode(scores, mask)
        outputs = tf.identity(tf.cast(scores, self.variable_dtype))
        # Keras passes only this tensor to the loss and the metric, so it carries the layer.
        outputs._crf = self
        return outputs

    def compute_output_spec(self, scores, mask=None, decode=False):
        if decode:
            return keras.KerasTensor(scores.shape[:-1], "int32")
        return keras.KerasTensor(scores.shape, self.variable_dtype)

    def get_config(self):
        names = ("labels", "boundaries", "initializer")
        return super().get_config() | {name: getattr(self, name) for name in names}

    @property
    def loss(self) -> keras.losses.Loss:
        """For `compile`: minus the log probability of a row's labels, the mean over rows."""
        return CRFLoss()

    @property
    def accuracy(self) -> keras.metrics.Metric:
        """For `compile`: the share of tokens whose decoded label is right."""
        return CRFAccuracy("accuracy")

    def log_likelihood(self, scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Returns the log probability of each row's labels among all sequences of labels.

        Args:
            scores: `(batch, time, labels)`.
            labels: integers `(batch, time)`; -1 on the right is padding.

        Returns:
            float32 `(batch,)`; 0 for a row of only padding, even if `time` is 0.
        """
        self._build_once(scores)
        scores, labels = _at_least_one_step(scores), _at_least_one_step(labels, -1)
        # Sums over paths are too long for half precision.
        scores = tf.cast(scores, self.transitions.dtype)
        mask = tf.cast(labels >= 0, scores.dtype)
        return self._path_score(scores, labels, mask) - self._log_sum_of_paths(scores, mask)

    def marginals(self, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the probability of each label of each token, float32 `(batch, time, labels)`; 0 at padding.

        Args:
            scores: as for `decode`.
            mask: as for `decode`.
        """
        self._build_once(scores)
        length, padded = tf.shape(scores)[1], tf.cast(_at_least_one_step(scores), self.transitions.dtype)
        mask = real_positions(scores, mask)
        real = tf.cast(_at_least_one_step(mask, False), padded.dtype)
        with tf.GradientTape() as tape:
            tape.watch(padded)
            log_sum = self._log_sum_of_paths(padded, real)
        return tape.gradient(log_sum, padded)[:, :length]

    def decode(self, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the best labels of each row by Viterbi's algorithm, int32 `(batch, time)`, -1 at padding.

        Args:
            scores: `(batch, time, labels)`, as the layer returns them.
            mask: bool `(batch, time)`, real tokens, with padding on the right only; None: all.
        """
        self._build_once(scores)
        weights = [tf.cast(weight, tf.float64) for weight in (self.begin, self.transitions, self.end)]
        if self._allowed is not None:
            weights = [tf.where(may, weight, -math.inf) for may, weight in zip(self._allowed, weights, strict=True)]
        mask = real_positions(scores, mask)
        best = viterbi(_at_least_one_step(scores), _at_least_one_step(mask, False), *weights)
        return best[:, : tf.shape(scores)[1]]

    def _build_once(self, scores: tf.Tensor) -> None:
        """Makes the weights, if the layer was not called before."""
        if not self.built:
            self.build(scores.shape)

    def _path_score(self, scores: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        labels = tf.maximum(labels, 0)
        tokens = tf.gather(scores, labels, axis=2, batch_dims=2)
        steps = tf.gather_nd(self.transitions, tf.stack([labels[:, :-1], labels[:, 1:]], -1))
        last = tf.maximum(tf.cast(tf.reduce_sum(mask, 1), tf.int32) - 1, 0)
        ends = tf.gather(self.begin, labels[:, 0]) + tf.gather(self.end, tf.gather(labels, last, batch_dims=1))
        inner = tf.reduce_sum(tokens * mask, 1) + tf.reduce_sum(steps * mask[:, 1:], 1)
        return inner + ends * mask[:, 0]

    def _log_sum_of_paths(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the log of the sum over all paths, by the forward algorithm."""
        first = scores[:, 0] + self.begin

        def step(sums, inputs):
            token, real = inputs
            longer = tf.reduce_logsumexp(sums[:, :, None] + self.transitions, 1) + token
            return tf.where(real[:, None] > 0, longer, sums)

        following = (tf.transpose(scores[:, 1:], (1, 0, 2)), tf.transpose(mask[:, 1:]))
        sums = tf.foldl(step, following, initializer=first)
        return tf.reduce_logsumexp(sums + self.end, 1) * mask[:, 0]


def _at_least_one_step(values: tf.Tensor, padding: float = 0.0) -> tf.Tensor:
    """Returns `(batch, time, ...)`, with a padding position if `time` is 0, so that there is a first label."""
    missing = tf.cast(tf.shape(values)[1] == 0, tf.int32)
    widths = [[0, 0], [0, missing], *[[0, 0]] * (len(values.shape) - 2)]
    return tf.pad(values, widths, constant_values=tf.cast(padding, values.dtype))


@tf.function(autograph=False, reduce_retracing=True)
def viterbi(scores: tf.Tensor, mask: tf.Tensor, begin: tf.Tensor, transitions: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """Decodes like `CRF.decode`: `begin` and `end` are float64 `(labels,)`, `transitions` `(from, to)`; -inf forbids.

    If several labels are equally good, it takes the first.
    """
    scores, mask = tf.cast(scores, tf.float64), tf.cast(mask, tf.bool)
    batch, time, labels = tf.unstack(tf.shape(scores))
    same = tf.range(labels)[None]
    # Before the first token every path is in the first label, and from there the first token's labels score `begin`.
    start = tf.tile(tf.where(same == 0, tf.constant(0.0, tf.float64), -math.inf), (batch, 1))

    def step(state, inputs):
        (best, _), (position, token, real) = state, inputs
        ways = best[:, :, None] + tf.where(position == 0, begin[None], transitions)
        # After the last token, nothing changes.
        before = tf.where(real[:, None], tf.argmax(ways, 1, tf.int32), same)
        return tf.where(real[:, None], tf.reduce_max(ways, 1) + token, best), before

    tokens = tf.range(time), tf.transpose(scores, (1, 0, 2)), tf.transpose(mask)
    best, before = tf.scan(step, tokens, (start, tf.zeros_like(start, tf.int32)))
    last = tf.argmax(best[-1] + end, 1, tf.int32)
    # Follows each token's best label back to the label of the token before.
    path = tf.scan(lambda label, before: tf.gather(before, label, batch_dims=1), before, last, reverse=True)
    return tf.where(mask, tf.transpose(tf.concat([path[1:], last[None]], 0)), -1)


@keras.saving.register_keras_serializable("elmo_tf")
class CRFLoss(keras.losses.Loss):
    """The loss that `CRF.loss` returns; each row has one sample weight."""

    def __init__(self, name: str = "crf_loss", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def __call__(self, y_true, y_pred, sample_weight=None):
        crf, labels = _crf_and_labels(y_true, y_pred)
        _check_weights(sample_weight)
        if crf is None:
            losses = tf.reduce_sum(y_pred, (1, 2)) * tf.cast(labels[:, 0], y_pred.dtype)
        else:
            losses = -crf.log_likelihood(y_pred, labels)
        return super().__call__(y_true, losses, sample_weight)

    def call(self, y_true, y_pred):
        return y_pred


@keras.saving.register_keras_serializable("elmo_tf")
class CRFAccuracy(keras.metrics.Mean):
    """The metric that `CRF.accuracy` returns."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        crf, labels = _crf_and_labels(y_true, y_pred)
        if crf is None:
            return
        weights = tf.cast(labels >= 0, self.dtype)
        _check_weights(sample_weight)
        if sample_weight is not None:
            weights *= tf.cast(tf.reshape(sample_weight, (-1, 1)), self.dtype)
        right = tf.cast(crf.decode(y_pred, labels >= 0) == labels, self.dtype)
        super().update_state(tf.reshape(right, (-1,)), tf.reshape(weights, (-1,)))


def _check_weights(sample_weight: Any) -> None:
    """Raises `InputError` for a weight per token, which Keras would broadcast with the losses of the rows."""
    shape = tf.TensorShape(()) if sample_weight is None else tf.convert_to_tensor(sample_weight).shape
    if shape.rank is not None and shape.rank > 1 and shape[1:] != (1,):
        raise InputError("sample_weight", "one number per sentence, (batch,)", tuple(shape))


def _crf_and_labels(y_true: tf.Tensor, y_pred: tf.Tensor) -> tuple[CRF | None, tf.Tensor]:
    """Returns the layer that `y_pred` comes from, and the labels, int32 `(batch, time)`, -1 where there is no token.

    The layer is None in a graph whose `y_pred` does not come from a `CRF`. Under a `tf.distribute` strategy, Keras
    traces losses and metrics once with other tensors of the right shape, so such a graph must not raise before it runs.
    """
    labels, mask = tf.cast(y_true, tf.int32), getattr(y_pred, "_keras_mask", None)
    if labels.shape.rank != 2:
        raise InputError("y_true", "integers (batch, time)", f"{y_true.dtype.name} {tuple(y_true.shape)}")
    crf = getattr(y_pred, "_crf", None)
    if crf is None:
        error = InputError("y_pred", "the output of an elmo_tf.CRF as it is", f"another tensor, {tuple(y_pred.shape)}")
        if tf.executing_eagerly():
            raise error
        with tf.control_dependencies([tf.debugging.Assert(False, [str(error)])]):
            labels = tf.identity(labels)
    return crf, labels if mask is None else tf.where(mask, labels, -1)
