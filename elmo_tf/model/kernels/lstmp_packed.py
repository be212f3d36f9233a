"""The projected LSTM over packed rows: `LSTMP` without arithmetic on padding.

The batch comes first, and the rows that reach a time step are the first ones: dropping the others is a slice, and
nothing is transposed. The input's part of the gates is computed for many time steps at once, outside the time loop.
"""

from typing import NamedTuple

import tensorflow as tf

from elmo_tf.model.operations import FORGET_BIAS, Clips, clip, matmul, next_cell

_POSITIONS = 512  # positions whose gates are in memory at once: 32 MB at 4096 units
# Columns of zeros after the gates. Without them, rows of a matrix start a power of two apart and share a few sets of
# the CPU's cache: with AVX2, a product of 64 rows takes twice as long.
_PADDING = 16

# The stored weights that `kernels` takes.
STORED = ("kernel", "bias", "projection_kernel")

# Cell float32 (batch, units) and recurrent state float32 (batch, projection_dim).
State = tuple[tf.Tensor, tf.Tensor]


class Kernels(NamedTuple):
    """Weights in the layout of inference, of the products' dtype: gates i, j, f, o, then columns of zeros."""

    # (input_dim + 1 or 2, 4 * units + 16). The rows after those of the input add up to the bias, the forget gate's 1
    # included: the bias itself, or the bias as bfloat16 and its rounding error.
    from_input: tf.Tensor
    recurrent: tf.Tensor  # (projection_dim, 4 * units + 16)
    projection: tf.Tensor | None = None  # (units, projection_dim)


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


def shapes(units: int, projection_dim: int, dtype: str) -> dict[str, tuple[int, int]]:
    """Returns the shapes of `Kernels` of `dtype` by name, for inputs as wide as the projection."""
    gates = 4 * units + _PADDING
    num_bias_rows = 1 if dtype == "float32" else 2
    kernel_shapes = {"from_input": (projection_dim + num_bias_rows, gates), "recurrent": (projection_dim, gates)}
    return kernel_shapes if projection_dim == units else kernel_shapes | {"projection": (units, projection_dim)}


def kernels(kernel: tf.Tensor, bias: tf.Tensor, projection_kernel: tf.Tensor | None = None, *, dtype: str) -> Kernels:
    """Returns the weights of `LSTMP` as `Kernels` of `dtype`."""
    units = bias.shape[0] // 4
    projection_dim = units if projection_kernel is None else projection_kernel.shape[-1]
    bias += _forget_bias(units)
    biases = [bias]
    if dtype != "float32":
        # A second row of biases holds the rounding error of the first.
        rounded = tf.cast(tf.cast(bias, dtype), tf.float32)
        biases = [rounded, bias - rounded]
    from_input = tf.concat([kernel[:-projection_dim], tf.stack(biases)], 0)
    projection = None if projection_kernel is None else tf.cast(projection_kernel, dtype)
    return Kernels(_padded(from_input, dtype), _padded(kernel[-projection_dim:], dtype), projection)


def unpacked(kernels: Kernels, input_dim: int) -> list[tf.Tensor]:
    """Returns kernel, bias and, if there is any, projection kernel of float32 `Kernels`: the inverse of `kernels`."""
    from_input, recurrent = kernels.from_input[:, :-_PADDING], kernels.recurrent[:, :-_PADDING]
    bias = tf.reduce_sum(from_input[input_dim:], 0) - _forget_bias(from_input.shape[-1] // 4)
    projection = [] if kernels.projection is None else [kernels.projection]
    return [tf.concat([from_input[:input_dim], recurrent], 0), bias, *projection]


def run(kernels: Kernels, clips: Clips, inputs: tf.Tensor, packing: Packing, state: State) -> tuple[tf.Tensor, State]:
    """Runs the LSTM over every row.

    Args:
        kernels, clips: of the LSTM.
        inputs: float32 `(N, input_dim)`, packed.
        packing: of the inputs.
        state: before the first time step, of the ranks that have a position.

    Returns:
        outputs float32 `(N, projection_dim)`, packed, and the state after the last time step, of the ranks that reach
        it: of all where all rows have the same length.
    """
    inputs, num_steps = _with_ones(inputs, kernels), tf.size(packing.sizes) - 1

    def piece(start, cell, recurrent, outputs):
        first = packing.offsets[start]
        # As many time steps as fit, and at least 1.
        fitting = tf.searchsorted(packing.offsets, [first + _POSITIONS], side="right")[0] - 1
        end = tf.maximum(fitting, start + 1)
        gates = matmul(inputs[first : packing.offsets[end]], kernels.from_input, kernels.from_input.dtype)

        def advance(time, cell, recurrent, outputs):
            row, size = packing.offsets[time] - first, packing.sizes[time]
            cell, recurrent = _step(kernels, clips, gates[row : row + size], (cell[:size], recurrent[:size]))
            return time + 1, cell, recurrent, outputs.write(time, recurrent)

        return _loop(end, advance, (start, cell, recurrent, outputs))

    # An empty element at the end, because `concat` needs one. One piece at a time, because the gates of several would
    # not fit into memory.
    width = state[1].shape[1]
    outputs = tf.TensorArray(tf.float32, num_steps + 1, infer_shape=False, element_shape=(None, width))
    start = (0, *state, outputs.write(num_steps, tf.zeros((0, width))))
    _, cell, recurrent, outputs = _loop(num_steps, piece, start, parallel_iterations=1)
    return outputs.concat(), (cell, recurrent)


def step(kernels: Kernels, clips: Clips, inputs: tf.Tensor, state: State) -> State:
    """Returns the state after one time step of inputs float32 `(batch, input_dim)`."""
    gates = matmul(_with_ones(inputs, kernels), kernels.from_input, kernels.from_input.dtype)
    return _step(kernels, clips, gates, state)


def _step(kernels: Kernels, clips: Clips, from_inputs: tf.Tensor, state: State) -> State:
    """Returns the next state, given the input's part of the gates `(batch, 4 * units + 16)`."""
    cell, recurrent = state
    gates = from_inputs + matmul(recurrent, kernels.recurrent, kernels.recurrent.dtype)
    input_gate, candidate, forget_gate, output_gate, _ = tf.split(gates, [cell.shape[1]] * 4 + [_PADDING], -1)
    input_gate, forget_gate, output_gate = map(tf.sigmoid, (input_gate, forget_gate, output_gate))
    cell, hidden = next_cell(input_gate, forget_gate, output_gate, tf.tanh(candidate), cell, clips.cell)
    if kernels.projection is None:
        return cell, hidden
    return cell, clip(matmul(hidden, kernels.projection, kernels.projection.dtype), clips.projection)


def _forget_bias(units: int) -> tf.Tensor:
    """Returns what is added to the biases of the gates, float32 `(4 * units,)`."""
    return tf.repeat(tf.constant([0.0, 0.0, FORGET_BIAS, 0.0]), units)


def _padded(weights: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns weights `(dim, 4 * units)` as `dtype`, with the columns of zeros."""
    return tf.pad(tf.cast(weights, dtype), ((0, 0), (0, _PADDING)))


def _with_ones(inputs: tf.Tensor, kernels: Kernels) -> tf.Tensor:
    """Returns the inputs with a column of ones for each row of the bias."""
    columns = kernels.from_input.shape[0] - inputs.shape[1]
    return tf.pad(inputs, ((0, 0), (0, columns)), constant_values=1.0)


def _loop(end, body, start, parallel_iterations=10):
    """Repeats `body`, of a time step, a state whose batch may shrink, and an array, until time step `end`."""
    invariants = [tf.TensorShape(())] * len(start)
    invariants[1:3] = [tf.TensorShape((None, part.shape[1])) for part in start[1:3]]
    return tf.while_loop(lambda time, *_: time < end, body, start, tuple(invariants), parallel_iterations)
