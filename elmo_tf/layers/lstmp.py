"""The projected LSTM with both clips, its state explicit."""

import keras
import tensorflow as tf

from elmo_tf.layers import lstmp_training


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
        if training:
            return self._run_training(inputs, *initial_state)
        input_dim = inputs.shape[-1]
        kernel = tf.cast(self.kernel, self.product_dtype)
        # The input's share of the gates for all time steps in one product, outside the loop.
        from_inputs = self._product(tf.transpose(inputs, (1, 0, 2)), kernel[:input_dim]) + self.bias
        kernels = [kernel[input_dim:]]
        if self.projection_kernel is not None:
            kernels.append(tf.cast(self.projection_kernel, self.product_dtype))
        outputs, cell, recurrent = self._run(from_inputs, *initial_state, *kernels)
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
            cell, recurrent = self._step(from_inputs[time], cell, recurrent, *kernels)
            return time + 1, cell, recurrent, outputs.write(time, recurrent)

        num_steps = tf.shape(from_inputs)[0]
        outputs = tf.TensorArray(tf.float32, num_steps, element_shape=recurrent.shape)
        _, cell, recurrent, outputs = _loop(num_steps, step, (0, cell, recurrent, outputs))
        return outputs.stack(), cell, recurrent

    def _step(self, from_input, cell, recurrent, recurrent_kernel, projection_kernel=None):
        """Returns the next cell and the next recurrent state."""
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
        return cell, recurrent

    def _run_training(self, inputs, cell, recurrent):
        """Does what `call` does, the gradient written by hand."""
        settings = lstmp_training.Settings(self.cell_clip, self.proj_clip, self.product_dtype)
        weights = [self.kernel, self.bias, *([] if self.projection_kernel is None else [self.projection_kernel])]
        outputs, cell, recurrent = lstmp_training.run(
            settings,
            tf.transpose(inputs, (1, 2, 0)),
            tf.transpose(cell),
            tf.transpose(recurrent),
            *(tf.convert_to_tensor(weight) for weight in weights),
        )
        return tf.transpose(outputs, (2, 0, 1)), (tf.transpose(cell), tf.transpose(recurrent))

    def _product(self, values, kernel):
        return tf.cast(tf.matmul(tf.cast(values, self.product_dtype), kernel), tf.float32)


def _loop(num_steps, step, start):
    return tf.while_loop(lambda time, *_: time < num_steps, step, start, maximum_iterations=num_steps)
