"""Matrix products of float32 arrays in the precision of one's choice."""

import tensorflow as tf


def matmul(left: tf.Tensor, right: tf.Tensor, dtype: str, **transposes: bool) -> tf.Tensor:
    """Returns the float32 product of two float32 arrays, multiplied as `dtype`, "float32" or "bfloat16"."""
    product = tf.matmul(tf.cast(left, dtype), tf.cast(right, dtype), **transposes)
    return tf.cast(product, tf.float32)
