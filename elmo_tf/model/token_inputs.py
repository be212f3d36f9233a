"""Sentences and tokens as inputs of Keras layers: conversion to tensors, checks, and the mask of real tokens."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import in_graph
from elmo_tf.text.tokenizers import to_bytes

_KERAS_INPUTS = "for sentences keras.Input((), dtype='string'), for tokens keras.Input((None,), dtype='string')"


def to_tensor(inputs: Any, max_chars_per_token: int) -> Any:
    """Returns lists, arrays of strings and ragged tensors as dense tensors, everything else unchanged.

    Args:
        inputs: a list, array or pandas column: of sentences (`str` or `bytes`), which becomes string `(batch,)`; or of
            lists of tokens, padded on the right with `""`. Or a RaggedTensor, string `(batch, (time))` or integers
            `(batch, (time), max_chars_per_token)`, in which `""` at the end of a row is a token.
        max_chars_per_token: character ids of a token.
    """
    if isinstance(inputs, str | bytes):
        return tf.constant(to_bytes(inputs, "inputs"))  # not a batch, so the layer refuses it
    if isinstance(inputs, tf.RaggedTensor):
        if inputs.dtype != tf.string or inputs.ragged_rank != 1 or inputs.shape.rank != 2:
            return inputs.to_tensor()
        lengths = tf.cast(inputs.row_lengths(), tf.int32)
        return in_graph.encode_tokens(inputs.to_tensor(""), lengths, max_chars_per_token)
    if hasattr(inputs, "columns"):
        raise InputError("inputs", "one column of a table", f"a {type(inputs).__name__}")
    if hasattr(inputs, "to_numpy"):  # a pandas column
        inputs = inputs.to_numpy()
    if isinstance(inputs, np.ndarray) and inputs.dtype.kind in "USOT":
        inputs = inputs.tolist()
    if isinstance(inputs, list | tuple) and not any(map(tf.is_tensor, inputs)) and _have_strings(inputs):
        inputs = keras.tree.map_structure(lambda token: to_bytes(token, "inputs"), inputs)
        ragged = tf.ragged.constant(inputs, dtype=tf.string)
        return ragged.to_tensor("") if isinstance(ragged, tf.RaggedTensor) else ragged
    return inputs


def _have_strings(values: list | tuple) -> bool:
    """Whether nested lists contain strings or `None`, or nothing at all."""
    leaves = keras.tree.flatten(values)
    return not leaves or any(leaf is None or isinstance(leaf, str | bytes) for leaf in leaves)


def are_sentences(inputs: tf.Tensor | keras.KerasTensor) -> bool:
    """Whether inputs are sentences, string `(batch,)`."""
    return keras.backend.standardize_dtype(inputs.dtype) == "string" and len(inputs.shape) == 1


def expected_inputs(max_chars_per_token: int, tokenizer: str | None) -> str:
    """Describes the inputs that a layer accepts, for its errors; arguments as for `check_inputs`."""
    sentences = "" if tokenizer is None else "sentences, strings (batch,), "
    return f"{sentences}tokens, strings (batch, time), or integers (batch, time, {max_chars_per_token})"


def check_inputs(inputs: tf.Tensor | keras.KerasTensor, max_chars_per_token: int, tokenizer: str | None) -> None:
    """Raises `InputError` unless dtype and shape are those of sentences, tokens or character ids.

    Args:
        inputs: what the layer was called with, as `to_tensor` returns it.
        max_chars_per_token: character ids of a token.
        tokenizer: how the layer splits sentences; None: it does not accept them.
    """
    expected, dtype = expected_inputs(max_chars_per_token, tokenizer), keras.backend.standardize_dtype(inputs.dtype)
    if isinstance(inputs.shape, tf.TensorShape) and inputs.shape.rank is None:
        raise InputError("inputs", expected, f"{dtype} of unknown rank; call `set_shape` first")
    shape = tuple(inputs.shape)
    # The usual input of Keras's text layers: a sentence would be read as a single token.
    single_column = isinstance(inputs, keras.KerasTensor) and shape[1:] == (1,)
    strings = dtype == "string" and len(shape) in ((2,) if tokenizer is None else (1, 2)) and not single_column
    ids = dtype.startswith(("int", "uint")) and len(shape) == 3 and shape[2] in (None, max_chars_per_token)
    if strings or ids:
        return
    actual = f"{dtype} {shape}"
    if dtype == "string" and not shape:
        actual += "; put a single sentence into a list"
    elif dtype == "string" and single_column:
        actual += f"; {_KERAS_INPUTS}"
    elif dtype == "string" and len(shape) == 1:
        actual += "; this layer's network came without a tokenizer, so name one: ELMo(..., tokenizer='penn')"
    elif "float" in dtype:
        actual += f"; a Sequential model has to begin with its input: {_KERAS_INPUTS}"
    raise InputError("inputs", expected, actual)


def distinct_sentences(tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distinct rows of tokens, string `(batch, time)`, and the number of each row among them."""
    with tf.device("CPU"):
        # A token may contain any byte, so only its length says where it ends.
        sizes = tf.strings.reduce_join(tf.strings.as_string(tf.strings.length(tokens)), 1, separator=" ")
        firsts, numbers = in_graph.distinct(tf.strings.join([sizes, tf.strings.reduce_join(tokens, 1)], "\n"))
        return tf.gather(tokens, firsts), numbers


@keras.saving.register_keras_serializable("elmo_tf")
class TokenMask(keras.layers.Layer):
    """The mask of token vectors, as a layer, so that functional models can contain it.

    Args:
        boundaries: whether the vectors include `<S>` and `</S>`.
        tokenizer: how sentences are split; None: inputs are tokens or character ids.

    Call arguments:
        inputs: string `(batch, time)` or integers `(batch, time, max_chars_per_token)`, padded on the right; or, with a
            tokenizer, string `(batch,)`.

    Returns:
        bool `(batch, time)`, or `(batch, time + 2)` with boundaries.
    """

    def __init__(self, boundaries: bool = False, tokenizer: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.boundaries = boundaries
        self.tokenizer = tokenizer
        self.supports_jit = False  # XLA has no strings

    def call(self, inputs):
        num_boundaries = 2 if self.boundaries else 0
        if isinstance(inputs, tf.RaggedTensor):
            num_tokens = tf.cast(inputs.row_lengths(), tf.int32)
            time = tf.maximum(tf.reduce_max(num_tokens), 0)
        elif inputs.shape.rank == 1:
            if inputs.dtype.is_floating:  # only the shape matters: see `ELMo._placeholder_output`
                num_tokens = tf.ones_like(inputs, tf.int32)
            else:  # the layer splits too; compared with the network, splitting twice costs nothing
                num_tokens = in_graph.split(inputs, self.tokenizer)[1]
            time = tf.maximum(tf.reduce_max(num_tokens), 0)
        else:
            num_tokens, time = lengths(inputs), tf.shape(inputs)[1]
        return tf.sequence_mask(num_tokens + num_boundaries, time + num_boundaries)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), "bool")

    def compute_output_shape(self, input_shape):
        batch_size, time = input_shape[:2] if len(input_shape) > 1 else (input_shape[0], None)
        if self.boundaries and time is not None:
            time += 2
        return (batch_size, time)


def lengths(inputs: tf.Tensor) -> tf.Tensor:
    """Returns each row's number of tokens, int32 `(batch,)`: up to the last that is not padding."""
    if inputs.dtype.is_floating:  # only the shape matters: see `ELMo._placeholder_output`
        return tf.fill(tf.shape(inputs)[:1], tf.shape(inputs)[1])
    real = inputs != "" if inputs.dtype == tf.string else tf.reduce_any(inputs != char_ids_lib.PADDING, -1)
    ends = tf.reduce_max(tf.where(real, tf.range(1, tf.shape(inputs)[1] + 1), 0), 1)
    return tf.maximum(ends, 0)  # the maximum over no columns is the smallest integer
