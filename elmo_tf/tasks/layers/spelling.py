"""A vector of each token's spelling, by a small convolution over its bytes."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.model.tracking import Tracked
from elmo_tf.tasks.layers.token_layer import TokenLayer
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import in_graph


@keras.saving.register_keras_serializable("elmo_tf")
class Spelling(Tracked, TokenLayer):
    """A system's own character CNN: bytes, a convolution, ReLU, the maximum over the token's positions.

    Returns float32 `(batch, time, widths * filters)`. Each distinct token of a batch is computed once. The markers
    of its begin and end are characters too.

    Args:
        filters: of each width.
        dim: width of a character's vector.
        width: characters that a filter spans; if several, there are `filters` of each.

    Reference:
        Ma and Hovy 2016; Peters et al. 2018, supplement A.7.
    """

    collections = ("kernels",)

    def __init__(self, filters: int, dim: int = 16, width: int | Sequence[int] = 3, **kwargs: Any):
        super().__init__(**kwargs)
        self.filters = filters
        self.dim = dim
        self.width = width
        widths = (width,) if isinstance(width, int) else tuple(width)
        self.output_dim = len(widths) * filters
        uniform = keras.initializers.RandomUniform(-0.05, 0.05)
        self.characters = self.add_weight(name="characters", shape=(char_ids_lib.PAD + 1, dim), initializer=uniform)
        self.kernels = [
            self.add_weight(name="kernel", shape=(span, dim, filters), initializer="glorot_uniform") for span in widths
        ]
        self.bias = self.add_weight(name="bias", shape=(self.output_dim,), initializer="zeros")
        self.built = True

    def vectors_of(self, tokens: tf.Tensor) -> tf.Tensor:
        with tf.device("CPU"):
            distinct, indices = tf.unique(tf.reshape(tokens, (-1,)))
        ids = in_graph.encode_tokens(distinct[None], tf.size(distinct)[None])[0]
        real = ids != char_ids_lib.PAD
        # Only as many positions as the longest token needs. There may be no token.
        longest = tf.maximum(tf.reduce_max(tf.reduce_sum(tf.cast(real, tf.int32), 1)), 1)
        ids, real = ids[:, :longest], tf.cast(real[:, :longest], self.compute_dtype)[..., None]
        characters = tf.gather(self.characters, ids) * real
        features = tf.concat([tf.nn.conv1d(characters, kernel, 1, "SAME") for kernel in self.kernels], -1) + self.bias
        # After the ReLU no feature is below 0, so the zeros at padding do not change the maximum.
        pooled = tf.reduce_max(tf.nn.relu(features) * real, 1)
        return tf.reshape(tf.gather(pooled, indices), (*tf.unstack(tf.shape(tokens)), pooled.shape[-1]))

    def get_config(self):
        return super().get_config() | {"filters": self.filters, "dim": self.dim, "width": self.width}
