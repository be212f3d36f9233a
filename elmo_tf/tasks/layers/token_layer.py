"""The base of the layers that give each token a vector."""

from typing import Any

import keras
import tensorflow as tf

from elmo_tf.model.token_inputs import TokenMask


class TokenLayer(keras.layers.Layer):
    """Gives each token a vector by itself: `vectors_of`, of width `output_dim`.

    Call arguments:
        tokens: string `(batch, time)`, padded on the right with `""`.

    Returns:
        float32 `(batch, time, output_dim)`, 0 at padding, with a Keras mask.
    """

    output_dim: int

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.supports_jit = False  # XLA has no strings
        self._mask = TokenMask()

    def call(self, tokens):
        mask = self._mask(tokens)
        if tokens.dtype != tf.string:
            # Only the shape matters: see `_of_shape_alone` in `elmo_tf.keras_layer`.
            tokens = tf.fill(tf.shape(mask), "")
        vectors = self.vectors_of(tokens)
        return vectors * tf.cast(mask, vectors.dtype)[..., None]

    def vectors_of(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of all tokens, padding included."""
        raise NotImplementedError

    def compute_mask(self, tokens, previous_mask=None):
        return self._mask(tokens)

    def compute_output_spec(self, tokens):
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.output_dim)
