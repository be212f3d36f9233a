"""Context-free token vectors: of words, and of their spelling."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.model.variables import Tracked
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import in_graph


class TokenLayer(keras.layers.Layer):
    """Context-free token vectors: `vectors_of`, of width `output_dim`.

    Call arguments:
        tokens: string `(batch, time)`, padded on the right with `""`.

    Returns:
        float32 `(batch, time, output_dim)`, 0 at padding, with a Keras mask.
    """

    output_dim: int

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.supports_jit = False  # XLA has no strings
        self._mask = TokenMask()

    def call(self, tokens):
        mask = self._mask(tokens)
        vectors = self.vectors_of(tokens)
        return vectors * tf.cast(mask, vectors.dtype)[..., None]

    def vectors_of(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of all tokens, padding included."""
        raise NotImplementedError

    def compute_mask(self, tokens, previous_mask=None):
        return self._mask(tokens)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.output_dim)


@keras.saving.register_keras_serializable("elmo_tf")
class WordEmbedding(TokenLayer):
    """Vectors of words, float32 `(batch, time, dim)`; all unknown words share the first row of the table.

    Args:
        words: the known words.
        dim: width of a vector.
        lower: whether tokens are converted to lower case first; `words` have to be in lower case then.
        trainable: whether the vectors are trained.
    """

    def __init__(self, words: Sequence[str], dim: int, lower: bool = False, trainable: bool = True, **kwargs: Any):
        super().__init__(trainable=trainable, **kwargs)
        self.words = [str(word) for word in words]
        self.dim = self.output_dim = dim
        self.lower = lower
        # A table needs an entry: without words, padding, whose vector is masked.
        keys, first = (self.words, 1) if self.words else ([""], 0)
        rows = tf.range(first, first + len(keys))
        initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(keys, tf.string), rows)
        self.table = tf.lookup.StaticHashTable(initializer, default_value=0)
        scale = math.sqrt(3 / dim)  # vectors of length 1 on average (Ma and Hovy 2016, section 3.1)
        initial = keras.initializers.RandomUniform(-scale, scale)
        self.vectors = self.add_weight(
            name="vectors", shape=(len(self.words) + 1, dim), initializer=initial, trainable=trainable
        )
        self.built = True

    def set_vectors(self, vectors: np.ndarray, zero_unknown: bool = False) -> None:
        """Sets the vectors of the first words, float32 `(words, dim)`; `zero_unknown`: that of unknown words to 0."""
        table = self.vectors.numpy()
        table[1 : len(vectors) + 1] = vectors
        if zero_unknown:
            table[0] = 0
        self.vectors.assign(table)

    def vectors_of(self, tokens: tf.Tensor) -> tf.Tensor:
        # ASCII first: with "utf-8", the user's locale decides what an I becomes; in Turkish, another letter.
        words = tf.strings.lower(tf.strings.lower(tokens), "utf-8") if self.lower else tokens
        return tf.gather(self.vectors, self.table.lookup(words))


@keras.saving.register_keras_serializable("elmo_tf")
class Spelling(Tracked, TokenLayer):
    """A system's own character CNN: bytes, a convolution, ReLU, the maximum over the token's positions.

    Returns float32 `(batch, time, widths * filters)`. Each distinct token of a batch is computed once. Begin and end
    markers are characters too.

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
        distinct = tf.concat([distinct, [""]], 0)  # TensorFlow's convolution of an empty batch has a different shape
        ids = in_graph.encode_tokens(distinct[None], tf.size(distinct)[None])[0]
        real = ids != char_ids_lib.PAD
        # Only as many positions as the longest token needs.
        longest = tf.reduce_max(tf.reduce_sum(tf.cast(real, tf.int32), 1))
        ids, real = ids[:, :longest], tf.cast(real[:, :longest], self.compute_dtype)[..., None]
        characters = tf.gather(self.characters, ids) * real
        features = tf.concat([tf.nn.conv1d(characters, kernel, 1, "SAME") for kernel in self.kernels], -1) + self.bias
        # After the ReLU no feature is below 0, so the zeros at padding do not change the maximum.
        pooled = tf.reduce_max(tf.nn.relu(features) * real, 1)
        return tf.reshape(tf.gather(pooled, indices), (*tf.unstack(tf.shape(tokens)), pooled.shape[-1]))
