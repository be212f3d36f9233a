"""The projected LSTM with both clips, its state explicit."""

import keras
import tensorflow as tf


class LSTMP(keras.layers.Layer):
    """A long short-term memory whose output is projected and fed back projected (LSTMP).

    Gate columns i, j, f, o; kernel rows input, then recurrent. 1 is added to the forget gate at run time. The cell is
    clipped before the output gate uses it; the projection has no bias and is clipped after. Time steps are independent
    of later ones, so that padding on the right never reaches a real position.

    Args:
        units: cells.
        projection_dim: width of output and recurrent state; equal to `units`: no projection (and no `proj_clip`).
        cell_clip: the cell is cut to +-this; None: never.
        proj_clip: the projection is cut to +-this; None: never.
        product_dtype: dtype of the matrix products; gates, state and output are float32.

    Call arguments:
        inputs: float32 `(batch, time, input_dim)`.
        initial_state: the pair cell float32 `(batch, units)`, recurrent float32 `(batch, projection_dim)`.
        training: whether a gradient will be asked for: it is then computed faster, from more memory. Changes no value.

    Returns:
        outputs float32 `(batch, time, projection_dim)` and the final state, a pair like `initial_state`.

    Reference:
        Sak et al. 2014, "Long Short-Term Memory Based Recurrent Neural Network Architectures"; TensorFlow 1's
        `tf.nn.rnn_cell.LSTMCell`, as bilm-tf uses it.
    """

    def __init__(
        self,
        units: int,
        projection_dim: int,
        cell_clip: float | None = 3.0,
        proj_clip: float | None = 3.0,
        product_dtype: str = "float32",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.proj_clip = proj_clip
        self.product_dtype = product_dtype

    @property
    def state_size(self) -> tuple[int, int]:
        """Widths of the cell and of the recurrent state."""
        return self.units, self.projection_dim

    def build(self, input_shape):
        rows = input_shape[-1] + self.projection_dim
        self.kernel = self.add_weight(name="kernel", shape=(rows, 4 * self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(4 * self.units,), initializer="zeros")
        self.projection_kernel = None
        if self.projection_dim != self.units:
            shape = (self.units, self.projection_dim)
            self.projection_kernel = self.add_weight(
                name="projection_kernel", shape=shape, initializer="glorot_uniform"
            )

    def call(self, inputs, initial_state, training=False):
        input_dim = inputs.shape[-1]
        kernel = tf.cast(self.kernel, self.product_dtype)
        # The input's share of the gates for all time steps in one product, outside the loop.
        from_inputs = self._product(tf.transpose(inputs, (1, 0, 2)), kernel[:input_dim]) + self.bias
        kernels = [kernel[input_dim:]]
        if self.projection_kernel is not None:
            kernels.append(tf.cast(self.projection_kernel, self.product_dtype))
        run = self._run_keeping if training else self._run
        outputs, cell, recurrent = run(from_inputs, *initial_state, *kernels)
        return tf.transpose(outputs, (1, 0, 2)), (cell, recurrent)

    def compute_output_shape(self, input_shape, *_):
        batch = input_shape[0]
        return (*input_shape[:-1], self.projection_dim), ((batch, self.units), (batch, self.projection_dim))

    def get_config(self):
        own = ("units", "projection_dim", "cell_clip", "proj_clip", "product_dtype")
        return super().get_config() | {name: getattr(self, name) for name in own}

    def _run(self, from_inputs, cell, recurrent, *kernels):
        """Returns the outputs `(time, batch, projection_dim)` and the final state."""

        def step(time, cell, recurrent, outputs):
            _, cell, recurrent = self._step(from_inputs[time], cell, recurrent, *kernels)
            return time + 1, cell, recurrent, outputs.write(time, recurrent)

        num_steps = tf.shape(from_inputs)[0]
        outputs = tf.TensorArray(tf.float32, num_steps, element_shape=recurrent.shape)
        _, cell, recurrent, outputs = _loop(num_steps, step, (0, cell, recurrent, outputs))
        return outputs.stack(), cell, recurrent

    def _step(self, from_input, cell, recurrent, recurrent_kernel, projection_kernel=None):
        """Returns the gates after their functions `(batch, 4 * units)`, the next cell and the next recurrent state."""
        entering, candidate, forgetting, leaving = tf.split(
            from_input + self._product(recurrent, recurrent_kernel), 4, -1
        )
        entering, candidate = tf.sigmoid(entering), tf.tanh(candidate)
        forgetting, leaving = tf.sigmoid(forgetting + 1.0), tf.sigmoid(leaving)
        cell = forgetting * cell + entering * candidate
        if self.cell_clip is not None:
            cell = tf.clip_by_value(cell, -self.cell_clip, self.cell_clip)
        recurrent = leaving * tf.tanh(cell)
        if projection_kernel is not None:
            recurrent = self._product(recurrent, projection_kernel)
            if self.proj_clip is not None:
                recurrent = tf.clip_by_value(recurrent, -self.proj_clip, self.proj_clip)
        return (entering, candidate, forgetting, leaving), cell, recurrent

    def _run_keeping(self, *arguments):
        """Does what `_run` does, and keeps gates and cells for a gradient written by hand.

        Derived automatically, the gradient would add to the kernels' gradients at every time step; here these are one
        product over all steps.
        """

        @tf.custom_gradient
        def run(from_inputs, cell, recurrent, *kernels):
            def step(time, cell, recurrent, gates, cells, outputs):
                functions, cell, recurrent = self._step(from_inputs[time], cell, recurrent, *kernels)
                gates = gates.write(time, tf.concat(functions, -1))
                return time + 1, cell, recurrent, gates, cells.write(time, cell), outputs.write(time, recurrent)

            num_steps = tf.shape(from_inputs)[0]
            arrays = [tf.TensorArray(tf.float32, num_steps) for _ in range(3)]
            _, last_cell, last_recurrent, *arrays = _loop(num_steps, step, (0, cell, recurrent, *arrays))
            gates, cells, outputs = (array.stack() for array in arrays)

            def gradient(d_outputs, d_cell, d_recurrent):
                earlier_cells = tf.concat([cell[None], cells[:-1]], 0)
                d_gates, d_products, d_cell, d_recurrent = self._backward(
                    gates, cells, earlier_cells, outputs, (d_outputs, d_cell, d_recurrent), *kernels
                )
                earlier_outputs = tf.concat([recurrent[None], outputs[:-1]], 0)
                d_kernels = [_kernel_gradient(earlier_outputs, d_gates, kernels[0].dtype)]
                if len(kernels) == 2:
                    hidden = tf.split(gates, 4, -1)[3] * tf.tanh(cells)
                    d_kernels.append(_kernel_gradient(hidden, d_products, kernels[1].dtype))
                return d_gates, d_cell, d_recurrent, *d_kernels

            return (outputs, last_cell, last_recurrent), gradient

        return run(*arguments)

    def _backward(self, gates, cells, earlier_cells, outputs, upstream, recurrent_kernel, projection_kernel=None):
        """Goes back through time; all sequences have time first.

        Args:
            gates, cells, outputs: what the forward pass kept.
            earlier_cells: the cells before each step.
            upstream: gradients of the outputs, the final cell and the final recurrent state.

        Returns:
            gradients of the gates before their functions, of the projections before their clip, and of the initial cell
            and recurrent state.
        """
        d_outputs, d_cell, d_recurrent = upstream
        num_steps = tf.shape(gates)[0]

        def step(time, d_cell, d_recurrent, all_d_gates, all_d_products):
            time -= 1
            entering, candidate, forgetting, leaving = tf.split(gates[time], 4, -1)
            d_hidden = d_products = d_outputs[time] + d_recurrent
            if projection_kernel is not None:
                d_products = _inside(outputs[time], self.proj_clip, d_products)
                d_hidden = self._product(d_products, projection_kernel, transposed=True)
            squashed = tf.tanh(cells[time])
            d_cell += d_hidden * leaving * (1.0 - squashed * squashed)
            d_cell = _inside(cells[time], self.cell_clip, d_cell)
            d_gates = tf.concat(
                [
                    d_cell * candidate * entering * (1.0 - entering),
                    d_cell * entering * (1.0 - candidate * candidate),
                    d_cell * earlier_cells[time] * forgetting * (1.0 - forgetting),
                    d_hidden * squashed * leaving * (1.0 - leaving),
                ],
                -1,
            )
            d_recurrent = self._product(d_gates, recurrent_kernel, transposed=True)
            all_d_gates, all_d_products = all_d_gates.write(time, d_gates), all_d_products.write(time, d_products)
            return time, d_cell * forgetting, d_recurrent, all_d_gates, all_d_products

        arrays = [tf.TensorArray(tf.float32, num_steps) for _ in range(2)]
        _, d_cell, d_recurrent, *arrays = tf.while_loop(
            lambda time, *_: time > 0,
            step,
            (num_steps, d_cell, d_recurrent, *arrays),
            maximum_iterations=num_steps,
        )
        return *(array.stack() for array in arrays), d_cell, d_recurrent

    def _product(self, values, kernel, transposed=False):
        product = tf.matmul(tf.cast(values, self.product_dtype), kernel, transpose_b=transposed)
        return tf.cast(product, tf.float32)


def _loop(num_steps, step, start):
    return tf.while_loop(lambda time, *_: time < num_steps, step, start, maximum_iterations=num_steps)


def _inside(values, clip, gradient):
    """Returns the gradient before a clip, from the clipped values and the gradient after it."""
    return gradient if clip is None else tf.where(tf.abs(values) < clip, gradient, 0.0)


def _kernel_gradient(inputs, gradient, dtype):
    """Returns `inputs^T gradient`, summed over time and batch."""
    flat = [tf.cast(tf.reshape(values, (-1, values.shape[-1])), dtype) for values in (inputs, gradient)]
    return tf.matmul(*flat, transpose_a=True)
