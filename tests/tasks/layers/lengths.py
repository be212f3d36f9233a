"""A model of tokens that is no biLM."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("tests")
class Lengths(keras.layers.Layer):
    """Three layers of width 2: a token's length, its double and its triple, each times a weight."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.add_weight(shape=(2,), initializer="ones")
        self.calls = 0

    def call(self, tokens):
        self.calls += 1
        lengths = tf.cast(tf.strings.length(tokens), tf.float32)[:, None, :, None]
        return lengths * tf.constant([1.0, 2, 3])[:, None, None] * self.weight

    def compute_output_spec(self, tokens):
        batch, time = tokens.shape
        return keras.KerasTensor((batch, 3, time, 2))
