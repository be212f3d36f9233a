"""One step of a projected LSTM's cell, shared by training and inference."""

from typing import NamedTuple

import tensorflow as tf

FORGET_BIAS = 1.0  # added to the forget gate at run time; stored files do not have it


class Clips(NamedTuple):
    """The limits of cell and projection; None: no clipping."""

    cell: float | None
    projection: float | None


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
