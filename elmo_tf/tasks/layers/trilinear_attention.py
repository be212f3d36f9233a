"""Attention with trilinear scores, between two sequences and within a sequence, for question answering."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.model.operations import real_positions

_MASKED_SCORE = -1e9  # below any score
# Maximum number of attention scores in memory at once (64 MB).
_MAX_SCORES = 2**24


class _Trilinear(keras.layers.Layer):
    """`score(x, y) = w1 x + w2 y + (w3 * x) y`: the scores of both attentions. A bias would have no effect."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.supports_jit = False  # the number of blocks varies

    def _build(self, dim: int) -> None:
        names = ("row_kernel", "column_kernel", "product_kernel")
        kernels = [self.add_weight(name=name, shape=(dim, 1), initializer="glorot_uniform") for name in names]
        self.row_kernel, self.column_kernel, self.product_kernel = kernels

    def _scores(self, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        """Returns float32 `(batch, rows, columns)` for `(batch, rows, dim)` and `(batch, columns, dim)`."""
        product = tf.matmul(rows * self.product_kernel[:, 0], columns, transpose_b=True)
        of_columns = tf.linalg.matrix_transpose(tf.tensordot(columns, self.column_kernel, 1))
        return product + tf.tensordot(rows, self.row_kernel, 1) + of_columns


@keras.saving.register_keras_serializable("elmo_tf")
class BiAttention(_Trilinear):
    """Attention of a context to a query and of the query to the context.

    `[x; a_x; x * a_x; x * b]` for each context vector `x`, where `a_x` is the mean of the query's vectors, weighted by
    a softmax of their scores with `x`, and `b` the mean of the context's vectors, weighted by a softmax of their
    highest scores.

    Call arguments:
        inputs: context, float32 `(batch, time, dim)`, and query `(batch, query_time, dim)`, each with or without a
            Keras mask; every row of both has a real position.

    Returns:
        float32 `(batch, time, 4 * dim)` with the context's mask.

    Reference:
        Seo et al. 2017, section 2; Clark and Gardner 2017, section 3.
    """

    def build(self, input_shape):
        self._build(input_shape[0][-1])

    def call(self, inputs, mask=None):
        context, query = inputs
        of_context, of_query = map(real_positions, inputs, mask or (None, None))

        def attend(rows: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            scores = tf.where(of_query[:, None], self._scores(rows, query), _MASKED_SCORE)
            return tf.concat([tf.matmul(tf.nn.softmax(scores), query), tf.reduce_max(scores, -1, keepdims=True)], -1)

        columns = _in_blocks(attend, context, tf.shape(query)[1], query.shape[-1] + 1)
        attended, highest = columns[..., :-1], columns[..., -1:]
        weights = tf.nn.softmax(tf.where(of_context[..., None], highest, _MASKED_SCORE), 1)
        summary = tf.reduce_sum(weights * context, 1, keepdims=True)
        return tf.concat([context, attended, context * attended, context * summary], -1)

    def compute_mask(self, inputs, mask=None):
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:-1], 4 * input_shape[0][-1])


@keras.saving.register_keras_serializable("elmo_tf")
class SelfAttention(_Trilinear):
    """Self-attention that excludes the position itself and has a learned "attend to nothing" logit.

    The denominator of the softmax has the additional term `exp(nothing)`, where `nothing` is learned from -1, so the
    weights of the other positions may sum to less than 1.

    Call arguments:
        vectors: float32 `(batch, time, dim)`, with or without a Keras mask.

    Returns:
        float32 `(batch, time, dim)`, the weighted sums, with the same mask.

    Reference:
        Clark and Gardner 2017, section 3; the code of document-qa for the term in the denominator.
    """

    def build(self, input_shape):
        self._build(input_shape[-1])
        self.nothing = self.add_weight(name="nothing", shape=(), initializer=keras.initializers.Constant(-1.0))

    def call(self, vectors, mask=None):
        real, positions = real_positions(vectors, mask), tf.range(tf.shape(vectors)[1])

        def attend(rows: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
            others = positions[None] != tf.range(start, start + tf.shape(rows)[1])[:, None]
            scores = tf.where(real[:, None] & others, self._scores(rows, vectors), _MASKED_SCORE)
            highest = tf.stop_gradient(tf.maximum(tf.reduce_max(scores, -1, keepdims=True), self.nothing))
            weights = tf.exp(scores - highest)
            total = tf.reduce_sum(weights, -1, keepdims=True) + tf.exp(self.nothing - highest)
            return tf.matmul(weights, vectors) / total

        return _in_blocks(attend, vectors, tf.shape(vectors)[1], vectors.shape[-1])

    def compute_output_shape(self, input_shape):
        return input_shape


def _in_blocks(
    attend: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], vectors: tf.Tensor, columns: tf.Tensor, dim: int
) -> tf.Tensor:
    """Returns `attend(vectors, 0)`, float32 `(batch, time, dim)`, computed in blocks of positions.

    So, outside of training, memory for scores does not grow with the square of the length. `attend` is called with the
    vectors of a block of positions and the index of the first; `columns` is the number of scores of a position.
    """
    batch_size, time = tf.unstack(tf.shape(vectors)[:2])
    size = tf.maximum(1, _MAX_SCORES // tf.maximum(1, batch_size * columns))
    blocks = tf.TensorArray(
        vectors.dtype, (time + size - 1) // size, infer_shape=False, element_shape=(None, None, dim)
    )

    def step(number: tf.Tensor, blocks: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        start = number * size
        attended = attend(vectors[:, start : start + size], start)
        # Positions first: `concat` joins blocks along their first axis.
        return number + 1, blocks.write(number, tf.transpose(attended, (1, 0, 2)))

    _, blocks = tf.while_loop(lambda number, _: number * size < time, step, (0, blocks))
    return tf.ensure_shape(tf.transpose(blocks.concat(), (1, 0, 2)), (*vectors.shape[:2], dim))
