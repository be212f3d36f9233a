"""An LSTM whose forget gate is 1 minus its input gate."""

from typing import Any

import keras
import tensorflow as tf

from elmo_tf.tasks.layers.orthogonal_blocks import orthogonal_blocks

_GATES = 3  # input gate, candidate, output gate


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
        width = _GATES * self.units
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], width))
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, width), initializer=orthogonal_blocks(self.units)
        )
        # Biases and states are initialized like kernels, as in the reference.
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="glorot_uniform")
        self.initial_cell = self.add_weight(name="initial_cell", shape=(1, self.units))
        self.initial_output = self.add_weight(name="initial_output", shape=(1, self.units))

    def call(self, vectors, mask=None, training=False):
        batch, time = tf.unstack(tf.shape(vectors)[:2])
        mask = tf.ones((batch, time), tf.bool) if mask is None else tf.cast(mask, tf.bool)
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        inputs = self._from_start(tf.einsum("btd,dg->btg", vectors, self.kernel) + self.bias, lengths)
        kept = tf.ones((batch, self.units), inputs.dtype)
        if training and self.recurrent_dropout_rate:
            kept = keras.random.dropout(kept, self.recurrent_dropout_rate, seed=self._seeds)
        kernel = tf.convert_to_tensor(self.recurrent_kernel)

        def step(states, gates):
            cell, output = states
            gate, candidate, output_gate = tf.split(gates + tf.matmul(output * kept, kernel), _GATES, 1)
            gate = tf.sigmoid(gate)
            cell = (1.0 - gate) * cell + gate * tf.tanh(candidate)
            return cell, tf.tanh(cell) * tf.sigmoid(output_gate)

        first = tuple(tf.tile(state, (batch, 1)) for state in (self.initial_cell, self.initial_output))
        # Padding comes after all real steps, so it cannot change them.
        _, outputs = tf.scan(step, tf.transpose(inputs, (1, 0, 2)), first)
        outputs = self._from_start(tf.transpose(outputs, (1, 0, 2)), lengths)
        return outputs * tf.cast(mask, outputs.dtype)[..., None]

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        own = ("units", "recurrent_dropout_rate", "reverse")
        return super().get_config() | {name: getattr(self, name) for name in own}

    def _from_start(self, values: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        return tf.reverse_sequence(values, lengths, seq_axis=1) if self.reverse else values
