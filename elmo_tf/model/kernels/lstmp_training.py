"""The projected LSTM for training, with a hand-written gradient: replaces calls of `bilm.LSTMP` on windows.

Inside, arrays have features first and the batch last, so that the weights are the left factor of every product: a CPU
repacks the right factor each time, which for the weights takes longer than the product itself. A step has one product
for all gates. The kernels' gradients are one product over all steps; TensorFlow's would be a sum over steps.
"""

import tensorflow as tf

from elmo_tf.model.bilm import LSTMP, State
from elmo_tf.model.kernels.fused import fused
from elmo_tf.model.operations import FORGET_BIAS, clip, matmul, next_cell


def run(lstm: LSTMP, inputs: tf.Tensor, state: State, dtype: str) -> tuple[tf.Tensor, State]:
    """Like `lstm(inputs, state)`, with matrix products in `dtype`."""
    clips, weights = (lstm.config.cell_clip, lstm.config.proj_clip), map(tf.convert_to_tensor, lstm.weights)
    transposed = tf.transpose(inputs, (1, 2, 0)), *map(tf.transpose, state)
    outputs, cell, recurrent = _differentiable(clips, dtype, *transposed, *weights)
    return tf.transpose(outputs, (2, 0, 1)), (tf.transpose(cell), tf.transpose(recurrent))


@tf.function(autograph=False)
def _differentiable(clips, dtype, *arguments):
    """`_forward` with its gradient, in a separate graph.

    TensorFlow never frees a custom gradient's graph, so it must not hold a network's weights.
    """
    return tf.custom_gradient(lambda *tensors: _forward(clips, dtype, *tensors))(*arguments)


def _forward(clips, dtype, inputs, first_cell, first_recurrent, kernel, bias, projection_kernel=None):
    num_steps, (cell_clip, proj_clip) = tf.shape(inputs)[0], clips
    kernel = tf.cast(kernel, dtype)
    by_gate = tf.transpose(kernel)
    if projection_kernel is not None:
        projection_kernel = tf.cast(projection_kernel, dtype)
        by_output = tf.transpose(projection_kernel)

    def advance(time, cell, recurrent, gates, cells, outputs):
        gate_inputs = tf.cast(tf.concat([inputs[time], recurrent], 0), dtype)
        functions, cell, hidden = _step(tf.matmul(by_gate, gate_inputs), bias, cell, cell_clip)
        recurrent = hidden
        if projection_kernel is not None:
            recurrent = clip(matmul(by_output, hidden, dtype), proj_clip)
        written = gates.write(time, functions), cells.write(time + 1, cell), outputs.write(time, recurrent)
        return time + 1, cell, recurrent, *written

    gates, outputs = (tf.TensorArray(tf.float32, num_steps, clear_after_read=False) for _ in range(2))
    cells = tf.TensorArray(tf.float32, num_steps + 1, clear_after_read=False).write(0, first_cell)
    start = 0, first_cell, first_recurrent, gates, cells, outputs
    _, cell, recurrent, gates, cells, outputs = tf.while_loop(
        lambda time, *_: time < num_steps, advance, start, maximum_iterations=num_steps
    )
    outputs = outputs.stack()

    def gradient(*upstream):
        d_gate_inputs, d_gates, d_cell, d_recurrent, hidden, d_products = _backward(
            clips, dtype, gates, cells, outputs, upstream, kernel, projection_kernel
        )
        input_dim = inputs.shape[1]
        gate_inputs = tf.concat([inputs, tf.concat([first_recurrent[None], outputs[:-1]], 0)], 1)
        d_gates = _features_first(d_gates)
        # Sums over time and batch of outer products. With the gates, which are more, on the left: half the time.
        d_kernels = [tf.transpose(matmul(d_gates, _features_first(gate_inputs), dtype, transpose_b=True))]
        d_kernels.append(tf.reduce_sum(tf.cast(d_gates, tf.float32), 1))
        if projection_kernel is not None:
            d_products = _features_first(d_products)
            d_kernels.append(matmul(_features_first(hidden), d_products, dtype, transpose_b=True))
        return d_gate_inputs[:, :input_dim], d_cell, d_recurrent, *d_kernels

    return (outputs, cell, recurrent), gradient


def _backward(clips, dtype, gates, cells, outputs, upstream, kernel, projection_kernel):
    """Backpropagates through time.

    Args:
        gates, cells, outputs: of the forward pass; `cells` includes the initial cell.
        upstream: gradients of the outputs, the final cell and the final recurrent state.
        kernel, projection_kernel: of the products' dtype.

    Returns:
        the gradients of each time step's input and previous recurrent state, stacked, and of its gates before
        activation; those of the initial cell and recurrent state; and each time step's input of the projection and
        gradient of the projection's output before the clip.
    """
    d_outputs, d_cell, d_recurrent = upstream
    cell_clip, proj_clip = clips
    num_steps = tf.shape(outputs)[0]
    input_dim = kernel.shape[0] - outputs.shape[1]

    def step_back(time, d_cell, d_recurrent, *arrays):
        time -= 1
        d_hidden = d_products = d_outputs[time] + d_recurrent
        if projection_kernel is not None:
            if proj_clip is not None:
                d_products = _clip_gradient(outputs[time], proj_clip, d_products)
            d_products = tf.cast(d_products, dtype)
            d_hidden = tf.matmul(projection_kernel, d_products)
        arguments = gates.read(time), cells.read(time + 1), cells.read(time), d_hidden, d_cell
        d_gates, d_cell, hidden = _step_gradient(*arguments, cell_clip, dtype)
        d_gate_inputs = matmul(kernel, d_gates, dtype)
        values = (d_gate_inputs, d_gates, hidden, d_products)
        arrays = [array.write(time, value) for array, value in zip(arrays, values, strict=True)]
        return time, d_cell, d_gate_inputs[input_dim:], *arrays

    of_products = tf.float32 if projection_kernel is None else dtype
    arrays = [tf.TensorArray(kind, num_steps) for kind in (tf.float32, dtype, dtype, of_products)]
    start = num_steps, d_cell, d_recurrent, *arrays
    _, d_cell, d_recurrent, *arrays = tf.while_loop(
        lambda time, *_: time > 0, step_back, start, maximum_iterations=num_steps
    )
    d_gate_inputs, d_gates, hidden, d_products = (array.stack() for array in arrays)
    return d_gate_inputs, d_gates, d_cell, d_recurrent, hidden, d_products


@fused
def _step(products, bias, cell, cell_clip):
    """Returns the activated gates `(4 * units, batch)`, the next cell and the hidden output, float32."""
    input_gate, candidate, forget_gate, output_gate = tf.split(tf.cast(products, tf.float32) + bias[:, None], 4, 0)
    input_gate, candidate = tf.sigmoid(input_gate), tf.tanh(candidate)
    forget_gate, output_gate = tf.sigmoid(forget_gate + FORGET_BIAS), tf.sigmoid(output_gate)
    cell, hidden = next_cell(input_gate, forget_gate, output_gate, candidate, cell, cell_clip)
    return tf.concat([input_gate, candidate, forget_gate, output_gate], 0), cell, hidden


@fused
def _step_gradient(gates, cell, earlier_cell, d_hidden, d_cell, cell_clip, dtype):
    """Returns gradients of the gates before activation and of the earlier cell, and the projection's input."""
    input_gate, candidate, forget_gate, output_gate = tf.split(gates, 4, 0)
    tanh_cell, d_hidden = tf.tanh(cell), tf.cast(d_hidden, tf.float32)
    d_cell += d_hidden * output_gate * (1.0 - tanh_cell * tanh_cell)
    if cell_clip is not None:
        d_cell = _clip_gradient(cell, cell_clip, d_cell)
    d_gates = tf.concat(
        [
            d_cell * candidate * input_gate * (1.0 - input_gate),
            d_cell * input_gate * (1.0 - candidate * candidate),
            d_cell * earlier_cell * forget_gate * (1.0 - forget_gate),
            d_hidden * tanh_cell * output_gate * (1.0 - output_gate),
        ],
        0,
    )
    return tf.cast(d_gates, dtype), d_cell * forget_gate, tf.cast(output_gate * tanh_cell, dtype)


def _clip_gradient(values, clip, gradient):
    """Returns the gradient before a clip, from the clipped values and the gradient after it."""
    return tf.where(tf.abs(values) < clip, gradient, 0.0)


def _features_first(values):
    """Returns `(time, features, batch)` as `(features, time * batch)`."""
    return tf.reshape(tf.transpose(values, (1, 0, 2)), (values.shape[1], -1))
