"""The weighted sum of a biLM's layers."""

import keras
import tensorflow as tf


class ScalarMix(keras.layers.Layer):
    """`gamma * sum_j softmax(scalar_parameters)_j layer_j`, the ELMo vector of one task.

    Args:
        num_layers: layers to mix, the token layer included.

    Call arguments:
        layers: float32 `(batch, num_layers, time, dim)`.

    Returns:
        float32 `(batch, time, dim)`.

    Reference:
        Peters et al. 2018, equation 1.
    """

    def __init__(self, num_layers: int, **kwargs):
        super().__init__(**kwargs)
        self.num_layers = num_layers

    def build(self, _):
        self.scalar_parameters = self.add_weight(
            name="scalar_parameters", shape=(self.num_layers,), initializer="zeros"
        )
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")

    def call(self, layers):
        return self.gamma * tf.einsum("j,bjtd->btd", tf.nn.softmax(self.scalar_parameters), layers)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *input_shape[2:])

    def get_config(self):
        return super().get_config() | {"num_layers": self.num_layers}
