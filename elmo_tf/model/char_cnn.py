"""The context-free token encoder: characters, convolutions, highway layers, projection."""

import itertools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.model.kernels.maxima import maximum_over_windows
from elmo_tf.model.operations import matmul
from elmo_tf.model.variables import Tracked
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import in_graph

_LONGEST = (8, 12)  # ids, two marks included, of the longest token of each group but the last
_MASK_VALUE = -1e9  # below any convolution's value


@keras.saving.register_keras_serializable("elmo_tf")
class Highway(keras.layers.Layer):
    """Lets a learned gate choose, per feature, between a transform of the input and the input itself.

    `g = sigmoid(x W_g + b_g)`, `y = g * relu(x W_t + b_t) + (1 - g) * x`. The gate opens the transform, although the
    files published for ELMo call it `carry`.

    Args:
        product_dtype: dtype of the matrix products; everything else is float32.

    Call arguments:
        inputs: float32 `(..., dim)`.

    Returns:
        float32 `(..., dim)`.

    Reference:
        Srivastava et al. 2015, "Highway Networks"; bilm-tf, `bilm/model.py`, `high`.
    """

    def __init__(self, product_dtype: str = "float32", **kwargs: Any):
        super().__init__(**kwargs)
        self.product_dtype = product_dtype

    def build(self, input_shape):
        dim = input_shape[-1]
        kernel = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.gate_kernel = self.add_weight(name="gate_kernel", shape=(dim, dim), initializer=kernel)
        self.gate_bias = self.add_weight(name="gate_bias", shape=(dim,), initializer=keras.initializers.Constant(-2.0))
        kernel = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.transform_kernel = self.add_weight(name="transform_kernel", shape=(dim, dim), initializer=kernel)
        self.transform_bias = self.add_weight(name="transform_bias", shape=(dim,), initializer="zeros")

    def call(self, inputs):
        gate = tf.sigmoid(matmul(inputs, self.gate_kernel, self.product_dtype) + self.gate_bias)
        transformed = tf.nn.relu(matmul(inputs, self.transform_kernel, self.product_dtype) + self.transform_bias)
        return gate * transformed + (1.0 - gate) * inputs


@keras.saving.register_keras_serializable("elmo_tf")
class CharCNN(Tracked, keras.layers.Layer):
    """Encodes each token from its characters alone.

    Character vectors, VALID convolutions of several widths, the maximum over positions, the activation, highway layers
    and, when `output_dim` is not the number of filters, a linear projection. Pad characters count like any others.
    Each distinct token of a call is encoded once, without the positions that cannot change a maximum because every
    token has pad characters there.

    Args:
        embedding_dim: width of a character's vector.
        filters: `(width, count)` of each convolution.
        num_highway: highway layers.
        activation: `"relu"` or `"tanh"`.
        output_dim: width of a token's vector.
        product_dtype: dtype of the matrix products; everything else is float32.

    Call arguments:
        char_ids: int32 `(..., max_chars_per_token)`; the vector of id 0 is zero.
        words: int32 of any shape, rows of `char_ids`, which is then a table `(n, max_chars_per_token)` of distinct
            tokens. Only rows that occur in `words` are encoded.

    Returns:
        float32 `(..., output_dim)`, a vector per element of `words` if they are given.

    Reference:
        Kim et al. 2015, "Character-Aware Neural Language Models"; Peters et al. 2018, section 3.4; bilm-tf,
        `bilm/model.py`, `_build_word_char_embeddings`.
    """

    collections = ("highways", "kernels", "biases")

    def __init__(
        self,
        embedding_dim: int,
        filters: tuple[tuple[int, int], ...],
        num_highway: int,
        activation: str,
        output_dim: int,
        product_dtype: str = "float32",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.embedding_dim = embedding_dim
        self.filters = tuple(tuple(pair) for pair in filters)
        self.num_highway = num_highway
        self.activation = activation
        self.output_dim = output_dim
        self.product_dtype = product_dtype
        self.supports_jit = False  # XLA has no strings and no varying number of distinct tokens
        self.highways = [Highway(product_dtype, name=f"highway_{number}") for number in range(num_highway)]

    def build(self, input_shape):
        uniform = keras.initializers.RandomUniform
        self.embedding = self.add_weight(
            name="embedding",
            shape=(char_ids_lib.NUM_CHARS - 1, self.embedding_dim),
            initializer=uniform(-1.0, 1.0),
        )
        self.kernels, self.biases = [], []
        for number, (width, count) in enumerate(self.filters):
            if self.activation == "relu":
                initial = uniform(-0.05, 0.05)
            else:
                initial = keras.initializers.RandomNormal(0.0, (width * self.embedding_dim) ** -0.5)
            shape = (width, self.embedding_dim, count)
            self.kernels.append(self.add_weight(name=f"kernel_{number}", shape=shape, initializer=initial))
            self.biases.append(self.add_weight(name=f"bias_{number}", shape=(count,), initializer="zeros"))
        num_filters = sum(count for _, count in self.filters)
        for highway in self.highways:
            highway.build((None, num_filters))
        self.projection = None
        if self.output_dim != num_filters:
            initial = keras.initializers.RandomNormal(0.0, num_filters**-0.5)
            self.projection = _Projection(self.output_dim, kernel_initializer=initial, name="projection")
            self.projection.build((None, num_filters))

    def call(self, char_ids, words=None):
        if words is None:
            shape = tf.shape(char_ids)[:-1]
            distinct, indices = _distinct_rows(tf.reshape(char_ids, (-1, char_ids.shape[-1])))
        else:
            shape = tf.shape(words)
            rows, indices = tf.unique(tf.reshape(words, (-1,)))
            distinct = tf.gather(char_ids, rows)
        # Tokens are grouped by length, so that a long token does not make every row long.
        lengths = _lengths(distinct)
        order = tf.argsort(lengths)
        counts = [tf.reduce_sum(tf.cast(lengths <= longest, tf.int32)) for longest in _LONGEST]
        distinct = tf.gather(distinct, order)
        bounds = [0, *counts, tf.size(order)]
        maxima = tf.concat([self._maxima(distinct[start:end]) for start, end in itertools.pairwise(bounds)], 0)
        vectors = tf.gather(self._transform(maxima), tf.math.invert_permutation(order))
        return tf.reshape(tf.gather(vectors, indices), tf.concat([shape, [self.output_dim]], 0))

    def compute_output_shape(self, char_ids_shape, words_shape=None):
        return (*(char_ids_shape[:-1] if words_shape is None else words_shape), self.output_dim)

    def _maxima(self, char_ids: tf.Tensor) -> tf.Tensor:
        """Returns the activated maxima over positions, `(n, num_filters)`, of ids `(n, chars)`.

        After the longest token, a single window of pads is enough: more equal windows change no maximum. A single
        product of the widest windows computes all convolutions, on a CPU about twice as fast as conv1d.
        """
        windows = self._windows(char_ids)
        products = matmul(tf.reshape(windows, (-1, windows.shape[-1])), self._kernel(), self.product_dtype)
        num_filters = products.shape[-1]
        maxima = maximum_over_windows(tf.reshape(products, (-1, tf.shape(windows)[1], num_filters)))
        maxima = tf.ensure_shape(maxima, (None, num_filters))
        activation = tf.nn.relu if self.activation == "relu" else tf.tanh
        return activation(maxima + tf.concat([bias.value for bias in self.biases], 0))

    def _windows(self, char_ids: tf.Tensor) -> tf.Tensor:
        """Returns the characters from each position on, `(n, windows, widest * embedding_dim + convolutions)`.

        The last columns are 1 for each convolution whose window reaches beyond the token's ids.
        """
        max_chars, widths = char_ids.shape[1], [width for width, _ in self.filters]
        longest = tf.reduce_max(tf.concat([[0], _lengths(char_ids)], 0))
        num_windows = tf.minimum(longest, max_chars - min(widths)) + 1
        padded = tf.pad(char_ids[:, : longest + max(widths)], ((0, 0), (0, max(widths))))
        ids = tf.stack([padded[:, offset : offset + num_windows] for offset in range(max(widths))], -1)
        # The row of id 0 is zero. tf.pad makes the table's gradient dense, so that replicas' gradients have one shape.
        characters = tf.gather(tf.pad(self.embedding, ((1, 0), (0, 0))), ids)
        shape = (tf.shape(char_ids)[0], num_windows)
        characters = tf.reshape(characters, (*shape, max(widths) * self.embedding_dim))
        is_past_end = tf.range(num_windows)[:, None] > [max_chars - width for width in widths]
        return tf.concat([characters, tf.broadcast_to(tf.cast(is_past_end, tf.float32), (*shape, len(widths)))], -1)

    def _kernel(self) -> tf.Tensor:
        """Returns all convolutions as one matrix `(columns of _windows, num_filters)`."""
        rows = max(width for width, _ in self.filters) * self.embedding_dim
        flat = []
        for (width, count), kernel in zip(self.filters, self.kernels, strict=True):
            kernel_rows = width * self.embedding_dim
            flat.append(tf.pad(tf.reshape(kernel, (kernel_rows, count)), ((0, rows - kernel_rows), (0, 0))))
        # A window that reaches too far is never the maximum.
        counts = [count for _, count in self.filters]
        mask = np.repeat(np.eye(len(counts), dtype=np.float32) * _MASK_VALUE, counts, axis=1)
        return tf.concat([tf.concat(flat, 1), mask], 0)

    def _transform(self, maxima: tf.Tensor) -> tf.Tensor:
        """Returns the vectors `(n, output_dim)` of `(n, num_filters)` maxima: highway layers, projection."""
        for highway in self.highways:
            maxima = highway(maxima)
        if self.projection is None:
            return maxima
        return matmul(maxima, self.projection.kernel, self.product_dtype) + self.projection.bias


class _Projection(keras.layers.Dense):
    """A dense layer that `model.quantize` leaves as it is: Keras could not load the model again."""


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
