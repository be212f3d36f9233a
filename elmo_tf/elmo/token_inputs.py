"""The forms of tokens that the ELMo layer accepts, as a tensor that Keras accepts."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.text import in_graph
from elmo_tf.text.tokens import to_bytes


def to_tensor(inputs: Any, max_chars_per_token: int, tokenizer: str | None = None) -> Any:
    """Returns lists, NumPy arrays of strings and ragged tensors as dense tensors, everything else unchanged.

    Args:
        inputs: a list of lists of `str` or `bytes`, or an array of them: rows are padded on the right with `""`. Or a
            RaggedTensor, string `(batch, (time))` or integers `(batch, (time), max_chars_per_token)`, in which `""` at
            the end of a row is a token.
        max_chars_per_token: character ids of a token.
        tokenizer: if not None, strings are sentences: a list or an array of them becomes string `(batch,)`.
    """
    if isinstance(inputs, str | bytes):
        return tf.constant(to_bytes(inputs, "inputs"))  # not a batch, so the layer refuses it
    if isinstance(inputs, tf.RaggedTensor):
        if inputs.dtype != tf.string or inputs.ragged_rank != 1 or inputs.shape.rank != 2:
            return inputs.to_tensor()
        lengths = tf.cast(inputs.row_lengths(), tf.int32)
        return in_graph.encode_tokens(inputs.to_tensor(""), lengths, max_chars_per_token)
    if isinstance(inputs, np.ndarray) and inputs.dtype.kind in "USOT":
        inputs = inputs.tolist()
    if isinstance(inputs, list | tuple) and not any(map(tf.is_tensor, inputs)) and _have_strings(inputs):
        inputs = keras.tree.map_structure(lambda token: to_bytes(token, "inputs"), inputs)
        if tokenizer is not None:
            return tf.constant(inputs, tf.string, None if inputs else (0,))
        ragged = tf.ragged.constant(inputs, dtype=tf.string)
        return ragged.to_tensor("") if isinstance(ragged, tf.RaggedTensor) else ragged
    return inputs


def _have_strings(values: list | tuple) -> bool:
    """Whether nested lists contain strings or `None`, or nothing at all."""
    leaves = keras.tree.flatten(values)
    return not leaves or any(leaf is None or isinstance(leaf, str | bytes) for leaf in leaves)
