"""Word vectors, looked up by the words themselves."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.tasks.layers.token_layer import TokenLayer


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
        # A table needs an entry. Without words it is padding, whose vector is masked.
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
        # ASCII first: with "utf-8", the user's locale decides what an I becomes, in Turkish another letter.
        words = tf.strings.lower(tf.strings.lower(tokens), "utf-8") if self.lower else tokens
        return tf.gather(self.vectors, self.table.lookup(words))

    def get_config(self):
        return super().get_config() | {"words": self.words, "dim": self.dim, "lower": self.lower}
