"""Sentences that a batch has more than once, computed once: the paragraph of several questions, for example."""

from collections.abc import Callable

import tensorflow as tf


def of_distinct(compute: Callable[[tf.Tensor], tf.Tensor], tokens: tf.Tensor) -> tf.Tensor:
    """Returns `compute(tokens)`, called with each distinct sentence of the batch once.

    Args:
        compute: from string `(sentences, time)` to a tensor with a row for each, which depends on that sentence alone.
        tokens: string `(batch, time)`.
    """
    with tf.device("CPU"):
        # A token may contain any byte, so the lengths say where each ends.
        lengths = tf.strings.reduce_join(tf.strings.as_string(tf.strings.length(tokens)), 1, separator=" ")
        joined = tf.strings.join([lengths, tf.strings.reduce_join(tokens, 1)], "\n")
        distinct, places = tf.unique(joined)
        firsts = tf.math.unsorted_segment_min(tf.range(tf.size(places)), places, tf.size(distinct))
        chosen = tf.gather(tokens, firsts)
    return tf.gather(compute(chosen), places)
