"""Padded batches as a single row of their real positions, time step after time step."""

from typing import NamedTuple

import tensorflow as tf


class Packing(NamedTuple):
    """Where each real position of a padded batch goes when padding is removed.

    Rows are ranked by descending length, so that the rows that reach a time step are the first ranks. N is the number
    of real positions.
    """

    order: tf.Tensor  # int32 (batch,): the row of each rank
    row_ranks: tf.Tensor  # int32 (batch,): the rank of each row
    lengths: tf.Tensor  # int32 (batch,): real positions of each rank
    started: tf.Tensor  # int32 (): ranks that have a position
    sizes: tf.Tensor  # int32 (steps + 1,): ranks that reach each time step; 0 after the last
    offsets: tf.Tensor  # int32 (steps + 1,): real positions before each time step, then all of them
    steps: tf.Tensor  # int32 (N,): the time step of each real position
    rows: tf.Tensor  # int32 (N,): its row
    mirrored: tf.Tensor  # int32 (N,): the position with the same distance from its row's other end
    last: tf.Tensor  # int32 (started,): the last real position of each rank
    ended: tf.Tensor  # int32 (started,): each rank's number in finishing order, ties by rank

    @property
    def num_steps(self) -> tf.Tensor:
        """Positions of the longest row, int32."""
        return tf.size(self.sizes) - 1


def pack(lengths: tf.Tensor) -> Packing:
    """Returns the packing of rows of these lengths, int32 `(batch,)`."""
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    lengths = tf.gather(lengths, order)
    steps = tf.range(tf.reduce_max(tf.concat([[0], lengths], 0)) + 1)
    sizes = tf.size(lengths) - tf.searchsorted(lengths[::-1], steps, side="right")  # lengths above the step's number
    offsets = tf.cumsum(sizes, exclusive=True)
    step_of = tf.repeat(steps, sizes)
    ranks = tf.range(tf.size(step_of)) - tf.gather(offsets, step_of)
    started = tf.math.count_nonzero(lengths, dtype=tf.int32)
    ends, ranked = lengths[:started] - 1, tf.range(started)
    return Packing(
        order=order,
        row_ranks=tf.math.invert_permutation(order),
        lengths=lengths,
        started=started,
        sizes=sizes,
        offsets=offsets,
        steps=step_of,
        rows=tf.gather(order, ranks),
        mirrored=tf.gather(offsets, tf.gather(lengths, ranks) - 1 - step_of) + ranks,
        last=tf.gather(offsets, ends) + ranked,
        ended=started - tf.gather(sizes, ends) + ranked - tf.gather(sizes, ends + 1),
    )
