"""Vectors of many tokens from their characters: replaces calls of `bilm.CharCNN`.

Gains: each distinct token is encoded once (in text, about half of the tokens are repeats); tokens are grouped
by length, and windows after the end of a group's longest token, which are all equal, are left out; a single product
computes all convolutions, on a CPU about twice as fast as conv1d; the gradient of the maximum takes half as many passes
over the largest array as TensorFlow's. Its gradients do not depend on timing (`three_uses`).
"""

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf.model.bilm import CharCNN, Highway
from elmo_tf.model.operations import matmul
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import in_graph

_LONGEST = (8, 12)  # ids, two marks included, of the longest token of each group but the last
_MASK_VALUE = -1e9  # below any convolution's value


def token_vectors(char_cnn: CharCNN, char_ids: tf.Tensor, words: tf.Tensor | None, dtype: str) -> tf.Tensor:
    """Returns the vectors of tokens, float32 `(..., output_dim)`.

    Args:
        char_cnn: the layer whose weights are used.
        char_ids: integers `(..., max_chars)`; the vector of id 0 is zero.
        words: int32 of any shape, rows of `char_ids`, which is then a table `(n, max_chars)` of distinct tokens. Only
            rows that occur in `words` are encoded, and there is a vector for each element of `words`.
        dtype: of the matrix products.
    """
    if words is None:
        shape = tf.shape(char_ids)[:-1]
        distinct, indices = _distinct_rows(tf.reshape(char_ids, (-1, char_ids.shape[-1])))
    else:
        shape = tf.shape(words)
        rows, indices = tf.unique(tf.reshape(words, (-1,)))
        distinct = tf.gather(char_ids, rows)
    lengths = _lengths(distinct)
    order = tf.argsort(lengths)
    counts = [tf.reduce_sum(tf.cast(lengths <= longest, tf.int32)) for longest in _LONGEST]
    distinct = tf.gather(distinct, order)
    bounds = [0, *counts, tf.size(order)]
    groups = [distinct[start:end] for start, end in itertools.pairwise(bounds)]
    weights = zip(three_uses(char_cnn.embedding), three_uses(_kernel(char_cnn)), strict=True)
    maxima = [_maxima(char_cnn, ids, *used, dtype) for ids, used in zip(groups, weights, strict=True)]
    vectors = tf.gather(_transform(char_cnn, tf.concat(maxima, 0), dtype), tf.math.invert_permutation(order))
    return tf.reshape(tf.gather(vectors, indices), tf.concat([shape, [char_cnn.output_dim]], 0))


def _maxima(char_cnn: CharCNN, char_ids: tf.Tensor, embedding: tf.Tensor, kernel: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns the maxima over positions, `(n, num_filters)`, of ids `(n, max_chars)`."""
    windows = _windows(char_cnn, char_ids, embedding)
    products = matmul(tf.reshape(windows, (-1, windows.shape[-1])), kernel, dtype)
    num_filters = products.shape[-1]
    maxima = maximum_over_windows(tf.reshape(products, (-1, tf.shape(windows)[1], num_filters)))
    return tf.ensure_shape(maxima, (None, num_filters))


def _windows(char_cnn: CharCNN, char_ids: tf.Tensor, embedding: tf.Tensor) -> tf.Tensor:
    """Returns the characters from each position on, `(n, windows, widest * embedding_dim + convolutions)`.

    After the longest token, a single window of pads is enough: more equal windows change no maximum. The last columns
    are 1 for each convolution whose window reaches beyond the token's ids.
    """
    max_chars, widths = char_ids.shape[1], [width for width, _ in char_cnn.config.filters]
    longest = tf.reduce_max(tf.concat([[0], _lengths(char_ids)], 0))
    num_windows = tf.minimum(longest, max_chars - min(widths)) + 1
    padded = tf.pad(char_ids[:, : longest + max(widths)], ((0, 0), (0, max(widths))))
    ids = tf.stack([padded[:, offset : offset + num_windows] for offset in range(max(widths))], -1)
    # The row of id 0 is zero. tf.pad makes the table's gradient dense, so that replicas' gradients have one shape.
    characters = tf.gather(tf.pad(embedding, ((1, 0), (0, 0))), ids)
    shape = (tf.shape(char_ids)[0], num_windows)
    characters = tf.reshape(characters, (*shape, max(widths) * char_cnn.config.embedding_dim))
    is_past_end = tf.range(num_windows)[:, None] > [max_chars - width for width in widths]
    return tf.concat([characters, tf.broadcast_to(tf.cast(is_past_end, tf.float32), (*shape, len(widths)))], -1)


def _kernel(char_cnn: CharCNN) -> tf.Tensor:
    """Returns all convolutions as one matrix `(columns of _windows, num_filters)`."""
    filters = char_cnn.config.filters
    rows = max(width for width, _ in filters) * char_cnn.config.embedding_dim
    flat = []
    for (width, count), kernel in zip(filters, char_cnn.kernels, strict=True):
        kernel_rows = width * char_cnn.config.embedding_dim
        flat.append(tf.pad(tf.reshape(kernel, (kernel_rows, count)), ((0, rows - kernel_rows), (0, 0))))
    # A window that reaches too far is never the maximum.
    counts = [count for _, count in filters]
    mask = np.repeat(np.eye(len(counts), dtype=np.float32) * _MASK_VALUE, counts, axis=1)
    return tf.concat([tf.concat(flat, 1), mask], 0)


def _transform(char_cnn: CharCNN, maxima: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns the vectors `(n, output_dim)` of `(n, num_filters)` maxima: activation, highway layers, projection."""
    activation = tf.nn.relu if char_cnn.config.activation == "relu" else tf.tanh
    values = activation(maxima + tf.concat([bias.value for bias in char_cnn.biases], 0))
    for highway in char_cnn.highways:
        values = _highway(highway, values, dtype)
    if char_cnn.projection is None:
        return values
    return matmul(values, char_cnn.projection.kernel, dtype) + char_cnn.projection.bias


def _highway(layer: Highway, x: tf.Tensor, dtype: str) -> tf.Tensor:
    for_gate, for_transform, carried = three_uses(x)
    gate = tf.sigmoid(matmul(for_gate, layer.gate_kernel, dtype) + layer.gate_bias)
    transformed = tf.nn.relu(matmul(for_transform, layer.transform_kernel, dtype) + layer.transform_bias)
    return gate * transformed + (1.0 - gate) * carried


def three_uses(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns `values` three times, one for each use, with a gradient that has the same bits in every run.

    TensorFlow itself adds three or more gradients of a tensor in one operation, `AddN`, into the first of their buffers
    that nothing else needs any more. Which one that is depends on timing, and with it the order and the last bit of the
    sum. `tf.identity` between the uses does not help: TensorFlow's optimizer makes one sum of them again.
    """
    values = tf.convert_to_tensor(values)
    first, second, third = (tf.ensure_shape(copy, values.shape) for copy in _three_uses(values))
    return first, second, third


# A separate graph: TensorFlow never frees a custom gradient's graph, so it must not hold a network's weights.
@tf.function(input_signature=[tf.TensorSpec(None, tf.float32)], autograph=False)
@tf.custom_gradient
def _three_uses(values: tf.Tensor) -> Any:
    def gradient(*upstream):
        return tf.reduce_sum(tf.stack(upstream), 0)

    return (values, values, values), gradient


# Also a separate graph.
@tf.function(input_signature=[tf.TensorSpec((None, None, None), tf.float32)], autograph=False)
@tf.custom_gradient
def maximum_over_windows(products: tf.Tensor) -> Any:
    """Returns the maxima `(n, num_filters)` of `(n, windows, num_filters)`; equal maxima share the gradient."""
    maxima = tf.reduce_max(products, 1)

    def gradient(upstream):
        is_maximum = products == maxima[:, None]
        count = tf.reduce_sum(tf.cast(is_maximum, upstream.dtype), 1)
        return tf.where(is_maximum, (upstream / count)[:, None], tf.zeros((), upstream.dtype))

    return maxima, gradient


def _lengths(char_ids: tf.Tensor) -> tf.Tensor:
    """Returns the number of ids of each row before its pads, int32 `(n,)`."""
    is_char = (char_ids != char_ids_lib.PAD) & (char_ids != char_ids_lib.PADDING)
    return tf.reduce_max(tf.where(is_char, tf.range(1, tf.shape(char_ids)[1] + 1), 0), 1)


def _distinct_rows(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distinct rows of int32 `(n, width)`, and each row's index among them.

    `tf.unique` cannot compare rows, so they become strings with the ids as code points.
    """
    first, indices = in_graph.distinct(tf.strings.unicode_encode(rows, "UTF-8"))
    return tf.gather(rows, first), indices
