"""Word vectors, looked up by the words themselves."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.layers.token_mask import TokenMask

_UNKNOWN = 0


@keras.saving.register_keras_serializable("elmo_tf")
class WordEmbedding(keras.layers.Layer):
    """Vectors of words; all words that are not known share one.

    Args:
        words: the known ones.
        dim: width of a vector.
        lower: whether tokens are converted to lower case first; `words` have to be in lower case then.
        trainable: whether the vectors are learned further.

    Call arguments:
        tokens: string `(batch, time)`, padded on the right with `""`.

    Returns:
        float32 `(batch, time, dim)`, 0 at padding, with a Keras mask.
    """

    def __init__(self, words: Sequence[str], dim: int, lower: bool = False, trainable: bool = True, **kwargs: Any):
        super().__init__(trainable=trainable, **kwargs)
        self.words = [str(word) for word in words]
        self.dim = dim
        self.lower = lower
        self.supports_masking = True
        self.supports_jit = False  # XLA has no strings
        self._mask = TokenMask()
        places = tf.range(_UNKNOWN + 1, len(self.words) + _UNKNOWN + 1)
        initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(self.words, tf.string), places)
        self._places = tf.lookup.StaticHashTable(initializer, default_value=_UNKNOWN)
        scale = math.sqrt(3 / dim)  # vectors of length 1 on average (Ma and Hovy 2016, section 3.1)
        initial = keras.initializers.RandomUniform(-scale, scale)
        self.vectors = self.add_weight(
            name="vectors", shape=(len(self.words) + 1, dim), initializer=initial, trainable=trainable
        )
        self.built = True

    def set_vectors(self, words: Sequence[str], vectors: np.ndarray, unknown: np.ndarray | None = None) -> None:
        """Sets the vectors of some of the words, and of unknown words, before training.

        Args:
            words: known ones.
            vectors: float32 `(words, dim)`.
            unknown: float32 `(dim,)`; None: it stays random.
        """
        table = self.vectors.numpy()
        places = {word: place for place, word in enumerate(self.words, _UNKNOWN + 1)}
        table[[places[word] for word in words]] = vectors
        if unknown is not None:
            table[_UNKNOWN] = unknown
        self.vectors.assign(table)

    def call(self, tokens):
        mask = self._mask(tokens)
        if tokens.dtype != tf.string:
            # Shapes alone: see `elmo_tf.elmo.layer`.
            tokens = tf.fill(tf.shape(mask), "")
        # ASCII by itself first: with "utf-8" an I becomes what the user's locale says, in Turkish another letter.
        words = tf.strings.lower(tf.strings.lower(tokens), "utf-8") if self.lower else tokens
        vectors = tf.gather(self.vectors, self._places.lookup(words))
        return vectors * tf.cast(mask, vectors.dtype)[..., None]

    def compute_mask(self, tokens, previous_mask=None):
        return self._mask(tokens)

    def compute_output_spec(self, tokens):
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.dim)

    def get_config(self):
        return super().get_config() | {"words": self.words, "dim": self.dim, "lower": self.lower}
