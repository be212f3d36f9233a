"""LSTMs other than Keras's, in one direction: with a highway around each step, and with coupled gates."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


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
        units, orthogonal = self.units, _orthogonal_blocks(self.units)
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], 6 * units), initializer=orthogonal)
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(units, 5 * units), initializer=orthogonal
        )

        def open_forget_gate(shape, dtype=None):
            return tf.cast(tf.range(shape[0]) // units == 1, dtype)

        self.bias = self.add_weight(name="bias", shape=(5 * units,), initializer=open_forget_gate)

    def call(self, inputs, mask=None, training=False):
        mask = tf.ones(tf.shape(inputs)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)
        zeros = tf.zeros((tf.shape(inputs)[0], self.units), inputs.dtype)
        kept = tf.ones_like(zeros)
        if training and self.dropout_rate:
            kept = keras.random.dropout(kept, self.dropout_rate, seed=self._random)
        kernel, recurrent_kernel, bias = map(tf.convert_to_tensor, (self.kernel, self.recurrent_kernel, self.bias))
        # One product for all steps. The direct projection, the last block, has no bias.
        projected = tf.matmul(inputs, kernel) + tf.pad(bias, [(0, self.units)])

        def step(states, position):
            (cell, output), (projected, real) = states, position
            products = tf.pad(tf.matmul(output, recurrent_kernel), [(0, 0), (0, self.units)])
            *gates, candidate, direct = tf.split(projected + products, 6, -1)
            input_gate, forget_gate, output_gate, highway_gate = map(tf.sigmoid, gates)
            next_cell = forget_gate * cell + input_gate * tf.tanh(candidate)
            next_output = kept * (direct + highway_gate * (output_gate * tf.tanh(next_cell) - direct))
            return tf.where(real, next_cell, cell), tf.where(real, next_output, output)

        by_time = tf.transpose(projected, (1, 0, 2)), tf.transpose(mask)[..., None]
        outputs = tf.scan(step, by_time, (zeros, zeros), reverse=self.go_backwards)[1]
        return tf.where(mask[..., None], tf.transpose(outputs, (1, 0, 2)), tf.zeros((), outputs.dtype))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        own = ("units", "dropout_rate", "go_backwards", "seed")
        return super().get_config() | {name: getattr(self, name) for name in own}


@keras.saving.register_keras_serializable("elmo_tf")
class CoupledLSTM(keras.layers.Layer):
    """An LSTM with coupled gates and learned initial states, in one direction.

    `c = (1 - i) * c + i * tanh(j)`, `h = sigmoid(o) * tanh(c)`, where `i` is after its sigmoid and `i, j, o` are the
    columns of `x W + h U + b`. The initial cell and output are learned.

    Args:
        units: width of the output.
        recurrent_dropout_rate: of the output that the next step reads; all steps of a row share a mask.
        reverse: whether rows are read from their last real position to their first.

    Call arguments:
        vectors: float32 `(batch, time, dim)`, with or without a Keras mask of right padding.

    Returns:
        float32 `(batch, time, units)`, 0 at padding.

    Reference:
        Lee et al. 2017, section 4 and appendix; `CustomLSTMCell` of its code, which has a second bias.
    """

    def __init__(self, units: int, recurrent_dropout_rate: float = 0.0, reverse: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.units = units
        self.recurrent_dropout_rate = recurrent_dropout_rate
        self.reverse = reverse
        self.supports_masking = True
        self._seeds = keras.random.SeedGenerator()

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
        batch, time = tf.unstack(tf.shape(vectors)[:2])
        mask = tf.ones((batch, time), tf.bool) if mask is None else tf.cast(mask, tf.bool)
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)

        def in_order(values: tf.Tensor) -> tf.Tensor:
            """Reverses the real positions of each row if the layer does."""
            return tf.reverse_sequence(values, lengths, seq_axis=1) if self.reverse else values

        inputs = in_order(tf.einsum("btd,dg->btg", vectors, self.kernel) + self.bias)
        kept = tf.ones((batch, self.units), inputs.dtype)
        if training and self.recurrent_dropout_rate:
            kept = keras.random.dropout(kept, self.recurrent_dropout_rate, seed=self._seeds)
        kernel = tf.convert_to_tensor(self.recurrent_kernel)

        def step(states, gates):
            cell, output = states
            gate, candidate, output_gate = tf.split(gates + tf.matmul(output * kept, kernel), 3, 1)
            gate = tf.sigmoid(gate)
            cell = (1.0 - gate) * cell + gate * tf.tanh(candidate)
            return cell, tf.tanh(cell) * tf.sigmoid(output_gate)

        first = tuple(tf.tile(state, (batch, 1)) for state in (self.initial_cell, self.initial_output))
        # Padding comes after all real steps, so it cannot change them.
        _, outputs = tf.scan(step, tf.transpose(inputs, (1, 0, 2)), first)
        return in_order(tf.transpose(outputs, (1, 0, 2))) * tf.cast(mask, outputs.dtype)[..., None]

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        own = ("units", "recurrent_dropout_rate", "reverse")
        return super().get_config() | {name: getattr(self, name) for name in own}


def _orthogonal_blocks(units: int) -> Callable[..., tf.Tensor]:
    """Returns an initializer of kernels whose blocks of `units` columns, one per gate, are orthogonal matrices."""

    def initial(shape, dtype=None):
        blocks = [keras.initializers.Orthogonal()((shape[0], units), dtype) for _ in range(shape[1] // units)]
        return tf.concat(blocks, 1)

    return initial
