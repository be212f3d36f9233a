"""Rows of unequal length as one run of their real positions, time step after time step."""

from typing import NamedTuple

import tensorflow as tf


class Packing(NamedTuple):
    """Where each real position of a padded batch stands when padding is left out.

    Rows are ranked by descending length: at every time step, those that still go on are the first ranks. N is the
    number of real positions.
    """

    order: tf.Tensor  # int32 (batch,): the row of each rank
    lengths: tf.Tensor  # int32 (batch,): real positions of each rank
    sizes: tf.Tensor  # int32 (steps,): ranks that go on at each time step
    offsets: tf.Tensor  # int32 (steps + 1,): real positions before each time step
    steps: tf.Tensor  # int32 (N,): the time step of each real position
    ranks: tf.Tensor  # int32 (N,): its rank

    @property
    def started(self) -> tf.Tensor:
        """How many ranks have a position, int32."""
        return tf.math.count_nonzero(self.lengths, dtype=tf.int32)

    @property
    def rows(self) -> tf.Tensor:
        """The row of each real position, int32 `(N,)`."""
        return tf.gather(self.order, self.ranks)

    @property
    def mirrored(self) -> tf.Tensor:
        """Which real position each is when every row is read from its end, int32 `(N,)`."""
        return tf.gather(self.offsets, tf.gather(self.lengths, self.ranks) - 1 - self.steps) + self.ranks

    @property
    def last(self) -> tf.Tensor:
        """The last real position of each rank that has one, int32 `(started,)`."""
        lengths = self.lengths[: self.started]
        return tf.gather(self.offsets, lengths - 1) + tf.range(self.started)


def pack(lengths: tf.Tensor) -> Packing:
    """Returns where the positions of rows of int32 `(batch,)` lengths stand."""
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    lengths = tf.gather(lengths, order)
    steps = tf.range(tf.reduce_max(tf.concat([[0], lengths], 0)))
    sizes = tf.size(lengths) - tf.searchsorted(
        lengths[::-1], steps, side="right"
    )  # ranks longer than the step's number
    offsets = tf.concat([[0], tf.cumsum(sizes)], 0)
    step_of = tf.repeat(steps, sizes)
    ranks = tf.range(offsets[-1]) - tf.gather(offsets, step_of)
    return Packing(order, lengths, sizes, offsets, step_of, ranks)
