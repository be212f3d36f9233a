"""The context-free token encoder: characters, convolutions, highway layers, projection."""

import keras
import tensorflow as tf

from elmo_tf.data import char_ids as char_ids_lib
from elmo_tf.layers.highway import Highway

_SHORT = 10  # ids of a short token: eight bytes and two marks


class CharCNN(keras.layers.Layer):
    """Encodes each token from its characters alone.

    Character vectors, VALID convolutions of several widths, the maximum over positions, the activation, highway layers
    and, when `output_dim` is not the number of filters, a linear projection. The pad characters of a token take part.
    Each distinct token of a call is encoded once, and positions at which every token has pad characters are left out
    when that cannot change a maximum.

    Args:
        embedding_dim: width of a character's vector.
        filters: `(width, count)` of each convolution.
        num_highway: highway layers.
        activation: `"relu"` or `"tanh"`.
        output_dim: width of a token's vector.

    Call arguments:
        char_ids: int32 `(..., max_chars_per_token)`; the vector of id 0 is zero.

    Returns:
        float32 `(..., output_dim)`.

    Reference:
        Kim et al. 2015, "Character-Aware Neural Language Models"; Peters et al. 2018, section 3.4; bilm-tf,
        `bilm/model.py`, `_build_word_char_embeddings`.
    """

    def __init__(
        self,
        embedding_dim: int,
        filters: tuple[tuple[int, int], ...],
        num_highway: int,
        activation: str,
        output_dim: int,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.embedding_dim = embedding_dim
        self.filters = tuple(tuple(pair) for pair in filters)
        self.num_highway = num_highway
        self.activation = activation
        self.output_dim = output_dim
        self.highways = [Highway(name=f"highway_{number}") for number in range(num_highway)]

    def build(self, input_shape):
        uniform = keras.initializers.RandomUniform
        self.embedding = self.add_weight(
            name="embedding",
            shape=(char_ids_lib.NUM_CHARS - 1, self.embedding_dim),
            initializer=uniform(-1.0, 1.0),
        )
        self.kernels, self.biases = [], []
        for number, (width, count) in enumerate(self.filters):
            initial = (
                uniform(-0.05, 0.05)
                if self.activation == "relu"
                else keras.initializers.RandomNormal(0.0, (width * self.embedding_dim) ** -0.5)
            )
            shape = (width, self.embedding_dim, count)
            self.kernels.append(self.add_weight(name=f"kernel_{number}", shape=shape, initializer=initial))
            self.biases.append(self.add_weight(name=f"bias_{number}", shape=(count,), initializer="zeros"))
        num_filters = sum(count for _, count in self.filters)
        for highway in self.highways:
            highway.build((None, num_filters))
        self.projection = None
        if self.output_dim != num_filters:
            self.projection = keras.layers.Dense(
                self.output_dim,
                kernel_initializer=keras.initializers.RandomNormal(0.0, num_filters**-0.5),
                name="projection",
            )
            self.projection.build((None, num_filters))

    def call(self, char_ids):
        shape = tf.shape(char_ids)
        distinct, places = _distinct_rows(tf.reshape(char_ids, (-1, char_ids.shape[-1])))
        # Short tokens apart from long ones, so that one long token does not make every token's row long.
        lengths = _lengths(distinct)
        order = tf.argsort(lengths)
        num_short = tf.reduce_sum(tf.cast(lengths <= _SHORT, tf.int32))
        distinct = tf.gather(distinct, order)
        maxima = tf.concat([self._maxima(distinct[:num_short]), self._maxima(distinct[num_short:])], 0)
        vectors = tf.gather(self._transform(maxima), tf.math.invert_permutation(order))
        return tf.reshape(tf.gather(vectors, places), tf.concat([shape[:-1], [self.output_dim]], 0))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.output_dim)

    def get_config(self):
        own = ("embedding_dim", "filters", "num_highway", "activation", "output_dim")
        return super().get_config() | {name: getattr(self, name) for name in own}

    def _maxima(self, char_ids: tf.Tensor) -> tf.Tensor:
        """Returns the convolutions' maxima over positions `(n, num_filters)` of `(n, chars)` ids, activation included.

        Positions past the longest token and one window of pads are left out: more equal windows change no maximum.
        """
        widest = max(width for width, _ in self.filters)
        char_ids = char_ids[:, : tf.reduce_max(tf.concat([[0], _lengths(char_ids)], 0)) + widest]
        # The row of id 0 is zero. Through tf.pad the table's gradient is dense: it has few rows, and as many for every
        # replica, which their sum needs.
        characters = tf.gather(tf.pad(self.embedding, ((1, 0), (0, 0))), char_ids)
        activation = tf.nn.relu if self.activation == "relu" else tf.tanh
        maxima = []
        for (width, count), kernel, bias in zip(self.filters, self.kernels, self.biases, strict=True):
            # A product over gathered windows is about twice as fast on a CPU as conv1d.
            num_windows = tf.shape(characters)[1] - width + 1
            windows = tf.concat([characters[:, offset : offset + num_windows] for offset in range(width)], -1)
            products = tf.matmul(windows, tf.reshape(kernel, (width * self.embedding_dim, count)))
            maxima.append(activation(tf.reduce_max(products, 1) + bias))
        return tf.concat(maxima, -1)

    def _transform(self, maxima: tf.Tensor) -> tf.Tensor:
        """Returns the vectors `(n, output_dim)` of `(n, num_filters)` maxima: highway layers, projection."""
        for highway in self.highways:
            maxima = highway(maxima)
        return maxima if self.projection is None else self.projection(maxima)


def _lengths(char_ids: tf.Tensor) -> tf.Tensor:
    """Returns int32 `(n,)`: the ids of each row before its pads."""
    is_char = (char_ids != char_ids_lib.PAD) & (char_ids != char_ids_lib.PADDING)
    return tf.reduce_max(tf.where(is_char, tf.range(1, tf.shape(char_ids)[1] + 1), 0), 1)


def _distinct_rows(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distinct rows of int32 `(n, width)`, and for each row the place of its like among them.

    Rows are compared as strings whose characters have the ids as code points, since `tf.unique` knows no rows.
    """
    spelled = tf.strings.unicode_encode(rows, "UTF-8")
    unique, places = tf.unique(spelled)
    numbers = tf.range(tf.shape(rows)[0])
    first = tf.math.unsorted_segment_min(numbers, places, tf.size(unique))
    return tf.gather(rows, first), places
