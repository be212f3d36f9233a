"""Repeated sentences of a batch computed once, such as the paragraph of several questions."""

from collections.abc import Callable

import tensorflow as tf

from elmo_tf.text import in_graph


def of_distinct(compute: Callable[[tf.Tensor], tf.Tensor], tokens: tf.Tensor) -> tf.Tensor:
    """Returns `compute(tokens)`, computed once for each distinct sentence.

    Args:
        compute: from string `(sentences, time)` to a tensor with a row for each, which depends on that sentence alone.
        tokens: string `(batch, time)`.
    """
    with tf.device("CPU"):
        # A token may contain any byte, so its end is known from its length only.
        lengths = tf.strings.reduce_join(tf.strings.as_string(tf.strings.length(tokens)), 1, separator=" ")
        firsts, places = in_graph.distinct(tf.strings.join([lengths, tf.strings.reduce_join(tokens, 1)], "\n"))
        chosen = tf.gather(tokens, firsts)
    return tf.gather(compute(chosen), places)
