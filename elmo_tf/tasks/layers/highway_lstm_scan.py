"""The loop of `HighwayLSTM` over the steps, with its gradient written by hand.

As in `lstmp_training`, arrays have features first and the batch last, so that the weights are the left factor of each
step's product, and the gradient of the recurrent kernel is one product over all steps.
"""

import tensorflow as tf


def run(inputs, kernel, recurrent_kernel, bias, mask=None, keep=None, go_backwards=False, training=True):
    """Runs the LSTM over all steps, in a graph of its own even when called eagerly.

    The arguments and the output `(batch, time, units)` are those of the layer, with its weights `(dim, 6 * units)`,
    `(units, 5 * units)` and `(5 * units,)`. Outputs are multiplied by the dropout mask `keep`, `(batch, units)`.
    Only in training is the gradient the one written here, which a SavedModel cannot store.
    """
    (dim, _), (units, _) = kernel.shape, recurrent_kernel.shape
    return _run(dim, units, inputs, kernel, recurrent_kernel, bias, mask, keep, go_backwards, training)


@tf.function(autograph=False, reduce_retracing=True)
def _run(dim, units, inputs, kernel, recurrent_kernel, bias, mask, keep, go_backwards, training):
    # One graph serves all batches, so shapes are unknown in it.
    kernel, recurrent_kernel = tf.ensure_shape(kernel, (dim, None)), tf.ensure_shape(recurrent_kernel, (units, None))
    batch_size, num_steps = tf.unstack(tf.shape(inputs)[:2])
    by_time = tf.reshape(tf.transpose(inputs, (1, 0, 2)), (num_steps * batch_size, dim))
    bias = tf.concat([bias, tf.zeros((units,), bias.dtype)], 0)
    seen = tf.reshape(tf.matmul(by_time, kernel) + bias, (num_steps, batch_size, 6 * units))
    seen = tf.transpose(seen, (0, 2, 1))
    real = None if mask is None else tf.transpose(tf.cast(mask, tf.bool))[:, None]
    keep = None if keep is None else tf.transpose(keep)

    def forward(seen, recurrent_kernel):
        return _forward(seen, recurrent_kernel, real, keep, go_backwards)

    if training:
        outputs = tf.custom_gradient(forward)(seen, recurrent_kernel)
    else:
        outputs, _ = forward(seen, recurrent_kernel)
    if real is not None:
        outputs = tf.where(real, outputs, tf.zeros((), outputs.dtype))
    return tf.transpose(outputs, (2, 0, 1))


def _forward(seen, recurrent_kernel, real, keep, go_backwards):
    """Returns the hidden state after each step `(time, units, batch)`, and the function of its gradient."""
    units, dtype = recurrent_kernel.shape[0], seen.dtype
    num_steps, _, batch_size = tf.unstack(tf.shape(seen))
    by_gate = tf.transpose(recurrent_kernel)
    zero = tf.ensure_shape(tf.zeros((units, batch_size), dtype), (units, seen.shape[2]))

    def place(step):
        return num_steps - 1 - step if go_backwards else step

    def advance(step, cell, hidden, gates, cells, outputs):
        time = place(step)
        functions, next_cell, output = _step(seen[time], tf.matmul(by_gate, hidden), cell, keep)
        if real is not None:
            next_cell, output = tf.where(real[time], next_cell, cell), tf.where(real[time], output, hidden)
        written = gates.write(step, functions), cells.write(step + 1, next_cell), outputs.write(time, output)
        return step + 1, next_cell, output, *written

    gates, outputs = (tf.TensorArray(dtype, num_steps, clear_after_read=False) for _ in range(2))
    cells = tf.TensorArray(dtype, num_steps + 1, clear_after_read=False).write(0, zero)
    *_, gates, cells, outputs = tf.while_loop(
        lambda step, *_: step < num_steps,
        advance,
        (0, zero, zero, gates, cells, outputs),
        maximum_iterations=num_steps,
    )
    outputs = tf.ensure_shape(outputs.stack(), (seen.shape[0], units, seen.shape[2]))

    def gradient(d_outputs):
        def go_back(step, d_cell, d_hidden, arrays):
            step -= 1
            time = place(step)
            given = d_outputs[time] + d_hidden, d_cell
            passed = [tf.zeros_like(zero)] * 2
            if real is not None:
                passed = [tf.where(real[time], tf.zeros((), dtype), one) for one in given]
                given = [tf.where(real[time], one, tf.zeros((), dtype)) for one in given]
            states = gates.read(step), cells.read(step + 1), cells.read(step), seen[time, 5 * units :]
            d_seen, d_cell = _step_gradient(*states, *given, keep)
            d_hidden = tf.matmul(recurrent_kernel, d_seen[: 5 * units])
            return step, d_cell + passed[1], d_hidden + passed[0], arrays.write(time, d_seen)

        *_, arrays = tf.while_loop(
            lambda step, *_: step > 0,
            go_back,
            (num_steps, zero, zero, tf.TensorArray(dtype, num_steps)),
            maximum_iterations=num_steps,
        )
        d_seen = arrays.stack()
        edge = tf.zeros((1, units, batch_size), dtype)
        before = [outputs[1:], edge] if go_backwards else [edge, outputs[:-1]]
        hidden, d_gates = (
            tf.reshape(tf.transpose(one, (1, 0, 2)), (one.shape[1], num_steps * batch_size))
            for one in (tf.concat(before, 0), d_seen[:, : 5 * units])
        )
        return d_seen, tf.matmul(hidden, d_gates, transpose_b=True)

    return outputs, gradient


def _step(seen, products, cell, keep):
    """Returns the activated gates and candidate `(5 * units, batch)`, the next cell and the output."""
    units = cell.shape[0]
    of_gates, of_candidate, straight = tf.split(seen, [4 * units, units, units], 0)
    products, candidate = tf.split(products, [4 * units, units], 0)
    gates, candidate = tf.sigmoid(of_gates + products), tf.tanh(of_candidate + candidate)
    input_gate, forget_gate, output_gate, highway_gate = tf.split(gates, 4, 0)
    cell = forget_gate * cell + input_gate * candidate
    output = straight + highway_gate * (output_gate * tf.tanh(cell) - straight)
    return tf.concat([gates, candidate], 0), cell, output if keep is None else output * keep


def _step_gradient(gates, cell, earlier_cell, straight, d_output, d_cell, keep):
    """Returns the gradients of a step's input products, `(6 * units, batch)`, and of the earlier cell."""
    input_gate, forget_gate, output_gate, highway_gate, candidate = tf.split(gates, 5, 0)
    d_output = d_output if keep is None else d_output * keep
    squashed = tf.tanh(cell)
    d_hidden = d_output * highway_gate
    d_cell += d_hidden * output_gate * (1.0 - squashed * squashed)
    d_seen = [
        d_cell * candidate * input_gate * (1.0 - input_gate),
        d_cell * earlier_cell * forget_gate * (1.0 - forget_gate),
        d_hidden * squashed * output_gate * (1.0 - output_gate),
        d_output * (output_gate * squashed - straight) * highway_gate * (1.0 - highway_gate),
        d_cell * input_gate * (1.0 - candidate * candidate),
        d_output * (1.0 - highway_gate),
    ]
    return tf.concat(d_seen, 0), d_cell * forget_gate
