"""One vector for a sequence: the maximum, minimum, mean or learned mean of its vectors."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.model.operations import real_positions

KINDS = ("max", "min", "mean", "attention")


@keras.saving.register_keras_serializable("elmo_tf")
class SequencePooling(keras.layers.Layer):
    """Concatenated poolings of the real positions of a sequence; 0 if there are none.

    Keras's `GlobalAveragePooling1D` returns NaN for a sequence without a real position.

    Args:
        kinds: `"max"`, `"min"`, `"mean"` or `"attention"`, the mean weighted by a softmax of a learned score; or
            several of these.

    Call arguments:
        vectors: float `(batch, time, dim)`, with a Keras mask or without. Half precision is summed in float32.

    Returns:
        `(batch, len(kinds) * dim)` of the same dtype.

    Reference:
        McCann et al. 2017, section 5 (all four); Chen et al. 2017, section 3.3 (mean and max).
    """

    def __init__(self, kinds: str | Sequence[str] = KINDS, **kwargs: Any):
        super().__init__(**kwargs)
        several = [kinds] if isinstance(kinds, str) else kinds
        if not isinstance(several, Sequence) or not several or not all(kind in KINDS for kind in several):
            raise InputError("kinds", f"one or some of {', '.join(KINDS)}", repr(kinds))
        self.kinds = tuple(several)
        self.supports_masking = True

    def build(self, input_shape):
        if "attention" in self.kinds:
            self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], 1))

    def call(self, vectors, mask=None):
        real, dtype = real_positions(vectors, mask)[..., None], vectors.dtype
        if dtype.size < tf.float32.size:
            vectors = tf.cast(vectors, tf.float32)
        masked, count = tf.where(real, vectors, 0), tf.reduce_sum(tf.cast(real, vectors.dtype), 1)
        poolings = {
            "max": lambda: tf.reduce_max(tf.where(real, vectors, vectors.dtype.min), 1),
            "min": lambda: tf.reduce_min(tf.where(real, vectors, vectors.dtype.max), 1),
            "mean": lambda: tf.reduce_sum(masked, 1) / tf.maximum(count, 1),
            "attention": lambda: tf.reduce_sum(masked * self._weights(vectors, real), 1),
        }
        pooled = tf.concat([poolings[kind]() for kind in self.kinds], -1)
        return tf.cast(tf.where(tf.reduce_any(real, 1), pooled, 0), dtype)

    def compute_mask(self, vectors, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], len(self.kinds) * input_shape[-1])

    def _weights(self, vectors: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        scores = tf.einsum("btd,dk->btk", vectors, tf.cast(self.kernel, vectors.dtype))
        return tf.nn.softmax(tf.where(real, scores, scores.dtype.min), 1)
