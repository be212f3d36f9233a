"""The operations that layers share: products in a chosen precision, one step of an LSTM's cell."""

import tensorflow as tf

FORGET_BIAS = 1.0  # added to the forget gate at run time; stored files do not have it


def matmul(left: tf.Tensor, right: tf.Tensor, dtype: str | tf.DType, **transposes: bool) -> tf.Tensor:
    """Returns the float32 product of two arrays that are multiplied in `dtype`, "float32" or "bfloat16"."""
    product = tf.matmul(tf.cast(left, dtype), tf.cast(right, dtype), **transposes)
    return tf.cast(product, tf.float32)


def summed(values: tf.Tensor) -> tf.Tensor:
    """Returns the sums of float32 `(terms, columns)` over the terms, float64 `(columns,)`.

    TensorFlow adds the rows of a column one after the other: a million exponentials in float32 would lose the small
    ones. Here 64 rows at a time are added in float32, which rounds by at most 64 half units in the last place, 4e-6.
    """
    num_terms, num_columns = tf.unstack(tf.shape(values)) if None in values.shape else values.shape
    blocks = tf.reshape(tf.pad(values, ((0, -num_terms % 64), (0, 0))), (-1, 64, num_columns))
    return tf.reduce_sum(tf.cast(tf.reduce_sum(blocks, 1), tf.float64), 0)


def real_positions(values: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Returns a Keras mask of `values`, bool `(batch, time)`; without a mask, all positions are real."""
    return tf.ones(tf.shape(values)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)


def next_cell(
    input_gate: tf.Tensor,
    forget_gate: tf.Tensor,
    output_gate: tf.Tensor,
    candidate: tf.Tensor,
    cell: tf.Tensor,
    cell_clip: float | None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the next cell and the hidden output before the projection, from activated gates and candidate."""
    cell = clip(forget_gate * cell + input_gate * candidate, cell_clip)
    return cell, output_gate * tf.tanh(cell)


def clip(values: tf.Tensor, limit: float | None) -> tf.Tensor:
    """Returns the values clipped to +-limit; None: no clipping."""
    if limit is None:
        return values
    return tf.raw_ops.ClipByValue(t=values, clip_value_min=-limit, clip_value_max=limit)
