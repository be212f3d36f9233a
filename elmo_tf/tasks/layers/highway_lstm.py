"""An LSTM whose output is mixed with its input by a highway gate."""

from typing import Any

import keras
import tensorflow as tf

from elmo_tf.tasks.layers.orthogonal_blocks import orthogonal_blocks

_BLOCKS = 5  # of columns: input, forget, output and highway gate, candidate
_FORGET_GATE = 1


@keras.saving.register_keras_serializable("elmo_tf")
class HighwayLSTM(keras.layers.Layer):
    """An LSTM with a highway connection around each step, in one direction.

    `h = t * (o * tanh(c)) + (1 - t) * x W_k`, where `t` is the highway gate, a sigmoid like the other gates, and
    `x W_k` the input's linear projection. In training, `h` is multiplied by a dropout mask that is the same at all
    steps of a sequence: the next step and the next layer both get the product.

    Columns of the kernel: input, forget, output and highway gate, candidate, projection of the input; the recurrent
    kernel and the bias lack the last. Each block of `units` columns starts orthogonal, the bias at 0 and that of the
    forget gate at 1.

    Args:
        units: width of state and output.
        dropout_rate: of the output and the recurrent state together, with one mask per sequence.
        go_backwards: whether it reads from the last position to the first. Unlike in Keras's layers, the output has the
            order of the input.
        seed: of the dropout.

    Call arguments:
        inputs: float `(batch, time, dim)`.
        mask: bool `(batch, time)`, real positions; None: all. Others leave the state unchanged.
        training: whether to apply dropout.

    Returns:
        float `(batch, time, units)`, 0 where the mask is False.

    Reference:
        He et al. 2017, "Deep Semantic Role Labeling: What Works and What's Next", section 2.1, and its code, deep_srl;
        Zhang et al. 2016, "Highway Long Short-Term Memory RNNs for Distant Speech Recognition".
    """

    def __init__(
        self,
        units: int,
        dropout_rate: float = 0.0,
        go_backwards: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.dropout_rate = dropout_rate
        self.go_backwards = go_backwards
        self.seed = seed
        self.supports_masking = True
        self._random = keras.random.SeedGenerator(seed) if dropout_rate else None

    def build(self, input_shape):
        kernel, recurrent = (input_shape[-1], (_BLOCKS + 1) * self.units), (self.units, _BLOCKS * self.units)
        orthogonal = orthogonal_blocks(self.units)
        self.kernel = self.add_weight(name="kernel", shape=kernel, initializer=orthogonal)
        self.recurrent_kernel = self.add_weight(name="recurrent_kernel", shape=recurrent, initializer=orthogonal)

        def open_forget_gate(shape, dtype=None):
            return tf.cast(tf.range(shape[0]) // self.units == _FORGET_GATE, dtype)

        self.bias = self.add_weight(name="bias", shape=recurrent[1:], initializer=open_forget_gate)

    def call(self, inputs, mask=None, training=False):
        keep = None
        if training and self.dropout_rate:
            ones = tf.ones((tf.shape(inputs)[0], self.units), inputs.dtype)
            keep = keras.random.dropout(ones, self.dropout_rate, seed=self._random)
        kernel, recurrent_kernel, bias = map(tf.convert_to_tensor, (self.kernel, self.recurrent_kernel, self.bias))
        # One product for all steps. The direct projection, the last block, has no bias.
        projected = tf.matmul(inputs, kernel) + tf.pad(bias, [(0, self.units)])
        return scan(projected, recurrent_kernel, mask, keep, self.go_backwards)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        own = ("units", "dropout_rate", "go_backwards", "seed")
        return super().get_config() | {name: getattr(self, name) for name in own}


def scan(projected, recurrent_kernel, mask=None, keep=None, go_backwards=False):
    """Runs a `HighwayLSTM` over all steps.

    Args:
        projected: float `(batch, time, 6 * units)`, the inputs times the kernel, plus the bias.
        recurrent_kernel: float `(units, 5 * units)`.
        mask: bool `(batch, time)`, or None.
        keep: float `(batch, units)`, the dropout mask of the outputs, or None.
        go_backwards: whether to start at the last position.

    Returns:
        float `(batch, time, units)`.
    """
    units = recurrent_kernel.shape[0]
    batch_size, num_steps = tf.unstack(tf.shape(projected)[:2])
    # Reading a slice of a tensor in the loop would make its gradient as large as the tensor, at each step.
    inputs = tf.TensorArray(projected.dtype, num_steps).unstack(tf.transpose(projected, (1, 0, 2)))
    by_time = None if mask is None else tf.transpose(tf.cast(mask, tf.bool))[:, :, None]
    outputs = tf.TensorArray(projected.dtype, num_steps, element_shape=(projected.shape[0], units))
    zero = tf.ensure_shape(tf.zeros((batch_size, units), projected.dtype), (projected.shape[0], units))

    def advance(step, cell, hidden, outputs):
        time = num_steps - 1 - step if go_backwards else step
        next_cell, output = _step(inputs.read(time), tf.matmul(hidden, recurrent_kernel), cell)
        if keep is not None:
            output *= keep
        if by_time is not None:
            next_cell, output = tf.where(by_time[time], next_cell, cell), tf.where(by_time[time], output, hidden)
        return step + 1, next_cell, output, outputs.write(time, output)

    *_, outputs = tf.while_loop(
        lambda step, *_: step < num_steps, advance, (0, zero, zero, outputs), maximum_iterations=num_steps
    )
    stacked = outputs.stack()
    if by_time is not None:
        stacked = tf.where(by_time, stacked, tf.zeros((), stacked.dtype))
    return tf.transpose(stacked, (1, 0, 2))


def _step(projected, products, cell):
    """Returns the next cell and the output, `(batch, units)` each."""
    units = cell.shape[-1]
    gate_inputs, candidate_input, direct = tf.split(projected, [4 * units, units, units], -1)
    gate_products, candidate_product = tf.split(products, [4 * units, units], -1)
    gates = tf.sigmoid(gate_inputs + gate_products)
    input_gate, forget_gate, output_gate, highway_gate = tf.split(gates, 4, -1)
    cell = forget_gate * cell + input_gate * tf.tanh(candidate_input + candidate_product)
    return cell, direct + highway_gate * (output_gate * tf.tanh(cell) - direct)
