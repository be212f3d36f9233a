"""A vector of each token's spelling, by a small convolution over its bytes."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.layers.token_mask import TokenMask
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import in_graph

_IDS = char_ids_lib.PAD + 1


@keras.saving.register_keras_serializable("elmo_tf")
class Spelling(keras.layers.Layer):
    """A character CNN of a task's own: bytes, a convolution, ReLU, the maximum over the token's positions.

    A token of a batch is computed once, however often it occurs. Its begin and its end are characters too.

    Args:
        filters: of each width.
        dim: width of a character's vector.
        width: characters that a filter sees; several: there are filters of each.

    Call arguments:
        tokens: string `(batch, time)`, padded on the right with `""`.

    Returns:
        float32 `(batch, time, widths * filters)`, 0 at padding, with a Keras mask.

    Reference:
        Ma and Hovy 2016; Peters et al. 2018, supplement A.7.
    """

    def __init__(self, filters: int, dim: int = 16, width: int | Sequence[int] = 3, **kwargs: Any):
        super().__init__(**kwargs)
        self.filters = filters
        self.dim = dim
        self.width = width
        self._widths = (width,) if isinstance(width, int) else tuple(width)
        self.supports_masking = True
        self.supports_jit = False  # XLA has no strings
        self._mask = TokenMask()
        uniform = keras.initializers.RandomUniform(-0.05, 0.05)
        self.characters = self.add_weight(name="characters", shape=(_IDS, dim), initializer=uniform)
        self.kernels = [
            self.add_weight(name="kernel", shape=(one, dim, filters), initializer="glorot_uniform")
            for one in self._widths
        ]
        self.bias = self.add_weight(name="bias", shape=(len(self._widths) * filters,), initializer="zeros")
        self.built = True

    def call(self, tokens):
        mask = self._mask(tokens)
        if tokens.dtype != tf.string:
            # Shapes alone: see `elmo_tf.elmo.layer`.
            tokens = tf.fill(tf.shape(mask), "")
        with tf.device("CPU"):
            distinct, places = tf.unique(tf.reshape(tokens, (-1,)))
        ids = in_graph.encode_tokens(distinct[None], tf.size(distinct)[None])[0]
        real = ids != char_ids_lib.PAD
        # Only as many positions as the longest token needs.
        longest = tf.reduce_max(tf.reduce_sum(tf.cast(real, tf.int32), 1))
        ids, real = ids[:, :longest], tf.cast(real[:, :longest], self.compute_dtype)[..., None]
        characters = tf.gather(self.characters, ids) * real
        found = tf.concat([tf.nn.conv1d(characters, kernel, 1, "SAME") for kernel in self.kernels], -1) + self.bias
        # ReLU has no value below 0, so 0 is no new maximum.
        found = tf.reduce_max(tf.nn.relu(found) * real, 1)
        vectors = tf.reshape(tf.gather(found, places), (*tf.unstack(tf.shape(tokens)), found.shape[-1]))
        return vectors * tf.cast(mask, vectors.dtype)[..., None]

    def compute_mask(self, tokens, previous_mask=None):
        return self._mask(tokens)

    def compute_output_spec(self, tokens):
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape, len(self._widths) * self.filters)

    def get_config(self):
        return super().get_config() | {"filters": self.filters, "dim": self.dim, "width": self.width}
