"""A highway layer."""

from typing import Any

import keras
import tensorflow as tf

from elmo_tf.model.operations import matmul


@keras.saving.register_keras_serializable("elmo_tf")
class Highway(keras.layers.Layer):
    """Lets a learned gate choose, per feature, between a transform of the input and the input itself.

    `g = sigmoid(x W_g + b_g)`, `y = g * relu(x W_t + b_t) + (1 - g) * x`. The gate opens the transform, although the
    files published for ELMo call it `carry`.

    Args:
        product_dtype: dtype of the matrix products; everything else is float32.

    Call arguments:
        inputs: float32 `(..., dim)`.

    Returns:
        float32 `(..., dim)`.

    Reference:
        Srivastava et al. 2015, "Highway Networks"; bilm-tf, `bilm/model.py`, `high`.
    """

    def __init__(self, product_dtype: str = "float32", **kwargs: Any):
        super().__init__(**kwargs)
        self.product_dtype = product_dtype

    def build(self, input_shape):
        dim = input_shape[-1]
        kernel = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.gate_kernel = self.add_weight(name="gate_kernel", shape=(dim, dim), initializer=kernel)
        self.gate_bias = self.add_weight(name="gate_bias", shape=(dim,), initializer=keras.initializers.Constant(-2.0))
        kernel = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.transform_kernel = self.add_weight(name="transform_kernel", shape=(dim, dim), initializer=kernel)
        self.transform_bias = self.add_weight(name="transform_bias", shape=(dim,), initializer="zeros")

    def call(self, inputs):
        gate = tf.sigmoid(matmul(inputs, self.gate_kernel, self.product_dtype) + self.gate_bias)
        transformed = tf.nn.relu(matmul(inputs, self.transform_kernel, self.product_dtype) + self.transform_bias)
        return gate * transformed + (1.0 - gate) * inputs

    def get_config(self):
        return super().get_config() | {"product_dtype": self.product_dtype}
