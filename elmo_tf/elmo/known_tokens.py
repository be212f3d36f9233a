"""Token vectors computed once for the words of a vocabulary."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text.tokens import to_bytes

_BATCH_SIZE = 1024


@keras.saving.register_keras_serializable("elmo_tf")
class KnownTokens(keras.layers.Layer):
    """Looks up the vectors of known tokens; the character encoder computes those of all others.

    Args:
        words: the known ones; sentence boundaries are known as well.
        max_chars_per_token: character ids a token.
        dim: width of a vector.

    Call arguments:
        char_ids: int32 `(..., max_chars_per_token)`.
        encode: the character encoder, from ids to vectors.

    Returns:
        float32 `(..., dim)`, what `encode` gives.
    """

    def __init__(self, words: Sequence[str | bytes], max_chars_per_token: int, dim: int, **kwargs):
        super().__init__(**kwargs)
        self.supports_jit = False  # XLA has no strings
        if isinstance(words, str | bytes):
            raise InputError("vocabulary", "a list of words", repr(words))
        tokens = dict.fromkeys([*char_ids_lib.SENTENCE_MARKS, *(to_bytes(word, "vocabulary") for word in words)])
        # Words that differ only behind the bytes that count are one token.
        self._ids = np.unique(char_ids_lib.encode_tokens(list(tokens), max_chars_per_token), axis=0)
        places = tf.range(len(self._ids))
        initializer = tf.lookup.KeyValueTensorInitializer(_spelled(self._ids), places)
        self._places = tf.lookup.StaticHashTable(initializer, default_value=-1)
        self.vectors = self.add_weight(
            name="vectors", shape=(len(self._ids), dim), initializer="zeros", trainable=False
        )

    def fill(self, encode: Callable[[tf.Tensor], tf.Tensor]) -> None:
        """Computes the vectors."""
        parts = [
            encode(tf.constant(self._ids[first : first + _BATCH_SIZE]))
            for first in range(0, len(self._ids), _BATCH_SIZE)
        ]
        self.vectors.assign(tf.concat(parts, 0))

    def call(self, char_ids, encode):
        ids = tf.reshape(char_ids, (-1, char_ids.shape[-1]))
        places = self._places.lookup(_spelled(ids))
        vectors = tf.gather(self.vectors, tf.maximum(places, 0))
        unknown = tf.where(places < 0)
        vectors = tf.tensor_scatter_nd_update(vectors, unknown, encode(tf.gather_nd(ids, unknown)))
        return tf.reshape(vectors, tf.concat([tf.shape(char_ids)[:-1], [vectors.shape[-1]]], 0))


def _spelled(ids: tf.Tensor | np.ndarray) -> tf.Tensor:
    """Returns each row as a string whose characters have the ids as code points, as tables know no rows."""
    return tf.strings.unicode_encode(ids, "UTF-8")
