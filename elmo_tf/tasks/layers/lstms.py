"""LSTMs other than Keras's, in one direction: with a highway around each step, and with coupled gates."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.model.operations import real_positions

States = tuple[tf.Tensor, tf.Tensor]  # cell and output


class _ScannedLSTM(keras.layers.Layer):
    """Scans a step over time: padding leaves the states unchanged, and its output is 0."""

    def __init__(self, units: int, dropout_rate: float = 0.0, go_backwards: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.units = units
        self.dropout_rate = dropout_rate
        self.go_backwards = go_backwards
        self.supports_masking = True
        self._seeds = keras.random.SeedGenerator()

    def _dropout_mask(self, inputs: tf.Tensor, training: bool) -> tf.Tensor:
        """Returns the mask of all steps, float `(batch, units)`; ones without dropout."""
        ones = tf.ones((tf.shape(inputs)[0], self.units), inputs.dtype)
        if training and self.dropout_rate:
            return keras.random.dropout(ones, self.dropout_rate, seed=self._seeds)
        return ones

    def _scan(
        self, step: Callable[..., States], projected: tf.Tensor, states: States, mask: tf.Tensor | None
    ) -> tf.Tensor:
        """Returns the outputs, float `(batch, time, units)`.

        `step` takes cell, output and a position's row of `projected`, `(batch, time, width)`, and returns the next cell
        and output.
        """
        mask = real_positions(projected, mask)

        def masked_step(states: States, inputs: tuple[tf.Tensor, tf.Tensor]) -> States:
            row, real = inputs
            cell, output = step(*states, row)
            return tf.where(real, cell, states[0]), tf.where(real, output, states[1])

        by_time = tf.transpose(projected, (1, 0, 2)), tf.transpose(mask)[..., None]
        outputs = tf.scan(masked_step, by_time, states, reverse=self.go_backwards)[1]
        return tf.where(mask[..., None], tf.transpose(outputs, (1, 0, 2)), tf.zeros((), outputs.dtype))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


@keras.saving.register_keras_serializable("elmo_tf")
class HighwayLSTM(_ScannedLSTM):
    """An LSTM with a highway connection around each step, in one direction.

    `h = t * (o * tanh(c)) + (1 - t) * x W_k`, where `t` is the highway gate, a sigmoid like the other gates, and
    `x W_k` the input's linear projection. In training, `h` is multiplied by a dropout mask that is the same at all
    steps of a sequence: the next step and the next layer both get the product.

    Columns of the kernel: input, forget, output and highway gate, candidate, projection of the input; the recurrent
    kernel and the bias lack the projection. Each block of `units` columns starts orthogonal, the bias at 0, the forget
    gate's at 1.

    Args:
        units: width of state and output.
        dropout_rate: of the output and the recurrent state together, with one mask per sequence.
        go_backwards: whether it reads from the last position to the first. Unlike in Keras's layers, the output has the
            order of the input.

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

    def build(self, input_shape):
        units, orthogonal = self.units, _orthogonal_blocks(self.units)
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], 6 * units), initializer=orthogonal)
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(units, 5 * units), initializer=orthogonal
        )

        def open_forget_gate(shape, dtype=None):
            return tf.cast(tf.range(shape[0]) // units == 1, dtype)

        self.bias = self.add_weight(name="bias", shape=(5 * units,), initializer=open_forget_gate)

    def call(self, inputs, mask=None, training=False):
        kernel, recurrent_kernel, bias = map(tf.convert_to_tensor, (self.kernel, self.recurrent_kernel, self.bias))
        dropout_mask = self._dropout_mask(inputs, training)

        def step(cell, output, projected):
            products = tf.pad(tf.matmul(output, recurrent_kernel), [(0, 0), (0, self.units)])
            *gates, candidate, direct = tf.split(projected + products, 6, -1)
            input_gate, forget_gate, output_gate, highway_gate = map(tf.sigmoid, gates)
            cell = forget_gate * cell + input_gate * tf.tanh(candidate)
            return cell, dropout_mask * (direct + highway_gate * (output_gate * tf.tanh(cell) - direct))

        # One product for all steps. The last block, the direct projection, has no bias.
        projected = tf.matmul(inputs, kernel) + tf.pad(bias, [(0, self.units)])
        zeros = tf.zeros_like(dropout_mask)
        return self._scan(step, projected, (zeros, zeros), mask)


@keras.saving.register_keras_serializable("elmo_tf")
class CoupledLSTM(_ScannedLSTM):
    """An LSTM with coupled gates and learned initial states, in one direction.

    `c = (1 - i) * c + i * tanh(j)`, `h = sigmoid(o) * tanh(c)`, where `i` is after its sigmoid and `i, j, o` are the
    columns of `x W + h U + b`. The initial cell and output are learned.

    Args:
        units: width of the output.
        dropout_rate: of the output that the next step reads; all steps of a row share a mask.
        go_backwards: as for `HighwayLSTM`.

    Call arguments:
        vectors: float32 `(batch, time, dim)`.
        mask, training: as for `HighwayLSTM`.

    Returns:
        float32 `(batch, time, units)`, 0 at padding.

    Reference:
        Lee et al. 2017, section 4 and appendix; `CustomLSTMCell` of its code, which has a second bias.
    """

    def build(self, input_shape):
        width = 3 * self.units  # input gate, candidate, output gate
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], width))
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, width), initializer=_orthogonal_blocks(self.units)
        )
        # Biases and states are initialized like kernels, as in the reference.
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="glorot_uniform")
        self.initial_cell = self.add_weight(name="initial_cell", shape=(1, self.units))
        self.initial_output = self.add_weight(name="initial_output", shape=(1, self.units))

    def call(self, vectors, mask=None, training=False):
        kernel, dropout_mask = tf.convert_to_tensor(self.recurrent_kernel), self._dropout_mask(vectors, training)

        def step(cell, output, projected):
            gate, candidate, output_gate = tf.split(projected + tf.matmul(output * dropout_mask, kernel), 3, 1)
            gate = tf.sigmoid(gate)
            cell = (1.0 - gate) * cell + gate * tf.tanh(candidate)
            return cell, tf.tanh(cell) * tf.sigmoid(output_gate)

        projected = tf.einsum("btd,dg->btg", vectors, self.kernel) + self.bias
        initial = (tf.tile(state, (tf.shape(vectors)[0], 1)) for state in (self.initial_cell, self.initial_output))
        return self._scan(step, projected, tuple(initial), mask)


def _orthogonal_blocks(units: int) -> Callable[..., tf.Tensor]:
    """Returns an initializer of kernels whose blocks of `units` columns, one per gate, are orthogonal matrices."""

    def initial(shape, dtype=None):
        blocks = [keras.initializers.Orthogonal()((shape[0], units), dtype) for _ in range(shape[1] // units)]
        return tf.concat(blocks, 1)

    return initial
