"""The projected LSTM over the real positions of whole sentences: replaces calls of `bilm.LSTMP` on padded batches.

Gains: no arithmetic on padding, which is half of an unsorted batch; the input's part of the gates is computed
for many time steps in one product, outside the time loop. The batch comes first, and the rows that reach a time step
are the first ones: dropping the others is a slice, and nothing is transposed.
"""

from typing import NamedTuple

import tensorflow as tf

from elmo_tf.model.bilm import LSTMP, State
from elmo_tf.model.operations import FORGET_BIAS, clip, matmul, next_cell

_POSITIONS = 512  # positions whose gates are in memory at once: 32 MB at 4096 units
# Columns of zeros after the gates, for products of many rows. Without them, rows of a matrix start a power of two apart
# and share a few sets of the CPU's cache: with AVX2, a product of 64 rows takes up to twice as long. For a few
# positions, adding the columns would take longer than the products.
_COLUMNS, _MANY_POSITIONS = 16, 128


class Packing(NamedTuple):
    """Where each real position of a padded batch goes when padding is removed.

    Rows are ranked by descending length, so that the rows that reach a time step are the first ranks. N is the number
    of real positions.
    """

    sizes: tf.Tensor  # int32 (steps + 1,): ranks that reach each time step; 0 after the last
    offsets: tf.Tensor  # int32 (steps + 1,): real positions before each time step, then all of them
    steps: tf.Tensor  # int32 (N,): the time step of each real position
    rows: tf.Tensor  # int32 (N,): its row
    mirrored: tf.Tensor  # int32 (N,): the position with the same distance from its row's other end


def pack(lengths: tf.Tensor) -> Packing:
    """Returns the packing of rows of these lengths, int32 `(batch,)`."""
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    lengths = tf.gather(lengths, order)
    steps = tf.range(tf.reduce_max(tf.concat([[0], lengths], 0)) + 1)
    sizes = tf.size(lengths) - tf.searchsorted(lengths[::-1], steps, side="right")  # lengths above the step's number
    offsets = tf.cumsum(sizes, exclusive=True)
    step_of = tf.repeat(steps, sizes)
    ranks = tf.range(tf.size(step_of)) - tf.gather(offsets, step_of)
    return Packing(
        sizes=sizes,
        offsets=offsets,
        steps=step_of,
        rows=tf.gather(order, ranks),
        mirrored=tf.gather(offsets, tf.gather(lengths, ranks) - 1 - step_of) + ranks,
    )


def run(lstm: LSTMP, inputs: tf.Tensor, state: State, packing: Packing, dtype: str) -> tuple[tf.Tensor, State]:
    """Runs the LSTM over every row.

    Args:
        lstm: the layer whose weights are used.
        inputs: float32 `(N, input_dim)`, packed.
        state: before the first time step, of the ranks that have a position; or of a single row, for all of them.
        packing: of the inputs.
        dtype: of the matrix products.

    Returns:
        outputs float32 `(N, projection_dim)`, packed, and the state after the last time step, of the ranks that reach
        it: of all where all rows have the same length.
    """
    num_steps, units = tf.size(packing.sizes) - 1, lstm.config.units
    kernel, bias = tf.cast(lstm.kernel, dtype), lstm.bias + tf.repeat([0.0, 0.0, FORGET_BIAS, 0.0], units)
    has_many_positions = tf.shape(inputs)[0] > _MANY_POSITIONS
    kernel, bias = tf.cond(  # `tf.pad` copies even without columns to add
        has_many_positions,
        lambda: (tf.pad(kernel, ((0, 0), (0, _COLUMNS))), tf.pad(bias, ((0, _COLUMNS),))),
        lambda: (kernel, bias),
    )
    from_input, recurrent = kernel[: inputs.shape[1]], kernel[inputs.shape[1] :]
    projection = None if lstm.projection_kernel is None else tf.cast(lstm.projection_kernel, dtype)

    def piece(start, cell, output, outputs):
        first = packing.offsets[start]
        # As many time steps as fit, and at least 1.
        fitting = tf.searchsorted(packing.offsets, [first + _POSITIONS], side="right")[0] - 1
        end = tf.maximum(fitting, start + 1)
        piece_gates = matmul(inputs[first : packing.offsets[end]], from_input, dtype) + bias

        def advance(time, cell, output, outputs):
            row, size = packing.offsets[time] - first, packing.sizes[time]
            gates = piece_gates[row : row + size] + matmul(output[:size], recurrent, dtype)
            input_gate, candidate, forget_gate, output_gate = tf.split(gates[:, : 4 * units], 4, -1)
            input_gate, forget_gate, output_gate = map(tf.sigmoid, (input_gate, forget_gate, output_gate))
            cell, output = next_cell(
                input_gate, forget_gate, output_gate, tf.tanh(candidate), cell[:size], lstm.config.cell_clip
            )
            if projection is not None:
                output = clip(matmul(output, projection, dtype), lstm.config.proj_clip)
            return time + 1, cell, output, outputs.write(time, output)

        return _loop(end, advance, (start, cell, output, outputs))

    # An empty element at the end, because `concat` needs one. One piece at a time, because the gates of several would
    # not fit into memory.
    width = state[1].shape[1]
    outputs = tf.TensorArray(tf.float32, num_steps + 1, infer_shape=False, element_shape=(None, width))
    state = tuple(tf.broadcast_to(part, (packing.sizes[0], part.shape[1])) for part in state)
    start = (0, *state, outputs.write(num_steps, tf.zeros((0, width))))
    _, cell, output, outputs = _loop(num_steps, piece, start, parallel_iterations=1)
    return outputs.concat(), (cell, output)


def _loop(end, body, start, parallel_iterations=10):
    """Repeats `body`, of a time step, a state whose batch may shrink, and an array, until time step `end`."""
    invariants = [tf.TensorShape(())] * len(start)
    invariants[1:3] = [tf.TensorShape((None, part.shape[1])) for part in start[1:3]]
    return tf.while_loop(lambda time, *_: time < end, body, start, tuple(invariants), parallel_iterations)
