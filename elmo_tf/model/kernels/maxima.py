"""The maximum of the character convolutions over their windows."""

from typing import Any

import tensorflow as tf


# A graph of its own: TensorFlow keeps the graph of a custom gradient for good, so it must not hold a network's weights.
@tf.function(input_signature=[tf.TensorSpec((None, None, None), tf.float32)], autograph=False)
@tf.custom_gradient
def maximum_over_windows(products: tf.Tensor) -> Any:
    """Returns the maxima `(n, num_filters)` of `(n, windows, num_filters)`; equal maxima share the gradient.

    The same gradient as TensorFlow's, with half as many passes over arrays of the input's size.
    """
    maxima = tf.reduce_max(products, 1)

    def gradient(upstream):
        is_maximum = products == maxima[:, None]
        count = tf.reduce_sum(tf.cast(is_maximum, upstream.dtype), 1)
        return tf.where(is_maximum, (upstream / count)[:, None], tf.zeros((), upstream.dtype))

    return maxima, gradient
