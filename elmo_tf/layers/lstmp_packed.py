"""The projected LSTM over packed rows: what `LSTMP` computes, without arithmetic on padding.

Within a time step, arrays have features first and the batch last, as in training: weights are the left factor of every
product, which a CPU need not repack each time, and each gate of a batch is contiguous. The batch shrinks as rows end.
The input's part of the gates is computed for many time steps at once, outside the time loop.
"""

from typing import NamedTuple

import tensorflow as tf

from elmo_tf.layers.lstm_cell import FORGET_BIAS, clip, next_cell
from elmo_tf.layers.packing import Packing

_POSITIONS = 512  # whose gates are in memory at once: at 4096 units, 32 MB

# Cell float32 (units, batch) and recurrent state float32 (projection_dim, batch).
State = tuple[tf.Tensor, tf.Tensor]


class Kernels(NamedTuple):
    """Weights as they are used here, of the products' dtype: transposed, gates in the order i, f, o, j."""

    # (4 * units, input_dim + 1 or 2): the last columns add up to the bias, that of the forget gate included.
    from_input: tf.Tensor
    recurrent: tf.Tensor  # (4 * units, projection_dim)
    projection: tf.Tensor | None = None  # (projection_dim, units)


class Clips(NamedTuple):
    """What cell and projection are clipped to; None: never."""

    cell: float | None
    projection: float | None


def kernels(kernel: tf.Tensor, bias: tf.Tensor, projection_kernel: tf.Tensor | None, dtype: str) -> Kernels:
    """Returns the weights of `LSTMP` as `Kernels` of `dtype`."""
    units = bias.shape[0] // 4
    projection_dim = units if projection_kernel is None else projection_kernel.shape[-1]
    bias += _forget_bias(units)
    biases = [bias]
    if dtype != "float32":
        # What rounding loses is a column of its own.
        rounded = tf.cast(tf.cast(bias, dtype), tf.float32)
        biases = [rounded, bias - rounded]
    from_input = tf.concat([kernel[:-projection_dim], tf.stack(biases)], 0)
    projection = None if projection_kernel is None else tf.cast(tf.transpose(projection_kernel), dtype)
    return Kernels(_by_gate(from_input, dtype), _by_gate(kernel[-projection_dim:], dtype), projection)


def unpacked(kernels: Kernels, input_dim: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Returns the kernel, the bias and the projection kernel from which `kernels` made float32 `Kernels`."""

    def by_gate(weights):
        input_gate, forget_gate, output_gate, candidate = tf.split(tf.transpose(weights), 4, -1)
        return tf.concat([input_gate, candidate, forget_gate, output_gate], -1)

    from_input, recurrent = by_gate(kernels.from_input), by_gate(kernels.recurrent)
    bias = tf.reduce_sum(from_input[input_dim:], 0) - _forget_bias(from_input.shape[-1] // 4)
    projection = None if kernels.projection is None else tf.transpose(kernels.projection)
    return tf.concat([from_input[:input_dim], recurrent], 0), bias, projection


def run(kernels: Kernels, clips: Clips, inputs: tf.Tensor, packing: Packing, state: State) -> tuple[tf.Tensor, State]:
    """Runs the LSTM over every row.

    Args:
        kernels: the weights.
        clips: of cell and projection.
        inputs: float32 `(N, input_dim)`, packed.
        packing: where the rows' positions are.
        state: before the first time step, of all ranks.

    Returns:
        outputs float32 `(N, projection_dim)`, packed, and the state of each rank after its last position.
    """
    inputs, started, num_steps = _with_ones(inputs, kernels), packing.started, packing.num_steps
    (units, _), (width, _) = (part.shape for part in state)

    def piece(start, cell, recurrent, outputs, cells):
        first = packing.offsets[start]
        # The time steps whose positions fit; always one.
        fitting = tf.searchsorted(packing.offsets, [first + _POSITIONS], side="right")[0] - 1
        end = tf.maximum(fitting, start + 1)
        gates = _product(kernels.from_input, inputs[first : packing.offsets[end]], transpose_b=True)

        def advance(time, cell, recurrent, outputs, cells):
            place, size = packing.offsets[time] - first, packing.sizes[time]
            given = cell[:, :size], recurrent[:, :size]
            cell, recurrent = _step(kernels, clips, gates[:, place : place + size], given)
            ending = tf.transpose(cell[:, packing.sizes[time + 1] :])
            return time + 1, cell, recurrent, outputs.write(time, tf.transpose(recurrent)), cells.write(time, ending)

        return _loop(end, advance, (start, cell, recurrent, outputs, cells))

    # One piece after the other, or the gates of several would be in memory.
    arrays = _array(num_steps, width), _array(num_steps, units)
    start = (0, *(part[:, :started] for part in state), *arrays)
    *_, outputs, cells = _loop(num_steps, piece, start, parallel_iterations=1)
    outputs = outputs.concat()
    final = tf.gather(cells.concat(), packing.ended), tf.gather(outputs, packing.last)
    return outputs, tuple(
        tf.concat([tf.transpose(after), before[:, started:]], 1) for after, before in zip(final, state, strict=True)
    )


def step(kernels: Kernels, clips: Clips, inputs: tf.Tensor, state: State) -> State:
    """Returns the state after one time step of inputs float32 `(batch, input_dim)`."""
    return _step(kernels, clips, _product(kernels.from_input, _with_ones(inputs, kernels), transpose_b=True), state)


def _step(kernels: Kernels, clips: Clips, from_inputs: tf.Tensor, state: State) -> State:
    """Returns the next state, given the input's part of the gates `(4 * units, batch)`."""
    cell, recurrent = state
    units = cell.shape[0]
    gates = tf.reshape(from_inputs + _product(kernels.recurrent, recurrent), (4, -1))
    functions = *tf.unstack(tf.sigmoid(gates[:3])), tf.tanh(gates[3])
    cell, hidden = next_cell(*functions, tf.reshape(cell, (-1,)), clips.cell)
    recurrent = tf.reshape(hidden, (units, -1))
    if kernels.projection is not None:
        recurrent = clip(_product(kernels.projection, recurrent), clips.projection)
    return tf.reshape(cell, (units, -1)), recurrent


def _forget_bias(units: int) -> tf.Tensor:
    """Returns what is added to the biases of the gates i, j, f, o, float32 `(4 * units,)`."""
    return tf.repeat(tf.constant([0.0, 0.0, FORGET_BIAS, 0.0]), units)


def _by_gate(rows: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns `(dim, 4 * units)`, gates i, j, f, o, as `(4 * units, dim)`, gates i, f, o, j."""
    input_gate, candidate, forget_gate, output_gate = tf.split(tf.cast(rows, dtype), 4, -1)
    return tf.transpose(tf.concat([input_gate, forget_gate, output_gate, candidate], -1))


def _with_ones(inputs: tf.Tensor, kernels: Kernels) -> tf.Tensor:
    """Returns the inputs with the columns that the bias is multiplied by."""
    num_biases = kernels.from_input.shape[1] - inputs.shape[1]
    return tf.pad(inputs, ((0, 0), (0, num_biases)), constant_values=1.0)


def _product(kernel: tf.Tensor, values: tf.Tensor, **transposes: bool) -> tf.Tensor:
    return tf.cast(tf.matmul(kernel, tf.cast(values, kernel.dtype), **transposes), tf.float32)


def _array(num_steps: tf.Tensor, width: int) -> tf.TensorArray:
    """Returns an array of `(any, width)` for each time step, and an empty one, to be read also without time steps."""
    array = tf.TensorArray(tf.float32, num_steps + 1, infer_shape=False, element_shape=(None, width))
    return array.write(num_steps, tf.zeros((0, width)))


def _loop(end, body, start, parallel_iterations=10):
    """Repeats `body` of a time step, a state and arrays until time step `end`; the batch may shrink."""
    shapes = [tf.TensorShape(())] * len(start)
    shapes[1:3] = [tf.TensorShape((part.shape[0], None)) for part in start[1:3]]
    return tf.while_loop(lambda time, *_: time < end, body, start, tuple(shapes), parallel_iterations)
