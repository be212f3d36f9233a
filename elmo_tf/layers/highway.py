"""A highway layer."""

import keras
import tensorflow as tf


class Highway(keras.layers.Layer):
    """Lets a learned gate choose, per feature, between a transform of the input and the input itself.

    `g = sigmoid(x W_g + b_g)`, `y = g * relu(x W_t + b_t) + (1 - g) * x`. The gate opens the transform; the files
    published for ELMo call it `carry` all the same.

    Call arguments:
        inputs: float `(..., dim)`.

    Returns:
        float `(..., dim)`.

    Reference:
        Srivastava et al. 2015, "Highway Networks"; bilm-tf, `bilm/model.py`, `high`.
    """

    def build(self, input_shape):
        dim = input_shape[-1]
        kernel = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.gate_kernel = self.add_weight(name="gate_kernel", shape=(dim, dim), initializer=kernel)
        self.gate_bias = self.add_weight(name="gate_bias", shape=(dim,), initializer=keras.initializers.Constant(-2.0))
        kernel = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.transform_kernel = self.add_weight(name="transform_kernel", shape=(dim, dim), initializer=kernel)
        self.transform_bias = self.add_weight(name="transform_bias", shape=(dim,), initializer="zeros")

    def call(self, inputs):
        gate = tf.sigmoid(tf.matmul(inputs, self.gate_kernel) + self.gate_bias)
        transformed = tf.nn.relu(tf.matmul(inputs, self.transform_kernel) + self.transform_bias)
        return gate * transformed + (1.0 - gate) * inputs
