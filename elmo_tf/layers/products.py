"""Matrix products in a chosen precision."""

import tensorflow as tf


def matmul(left: tf.Tensor, right: tf.Tensor, dtype: str | tf.DType, **transposes: bool) -> tf.Tensor:
    """Returns the float32 product of two arrays that are multiplied in `dtype`, "float32" or "bfloat16"."""
    product = tf.matmul(tf.cast(left, dtype), tf.cast(right, dtype), **transposes)
    return tf.cast(product, tf.float32)
