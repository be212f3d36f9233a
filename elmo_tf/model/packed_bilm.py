"""The biLM for embedding only: weights in the layout of inference."""

from collections.abc import Mapping
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.model.encoder import Encoder, new_char_cnn
from elmo_tf.model.kernels import lstmp_packed
from elmo_tf.model.variables import DIRECTIONS, Tracked, float32_policy, relative_names


@keras.saving.register_keras_serializable("elmo_tf")
class PackedBiLM(Encoder):
    """A biLM for embedding, not trainable: its weights are stored once, in the layout of inference.

    Call arguments and results are those of `BiLM`.

    Args:
        config: the network's sizes. The weights are 0 until they are assigned or loaded; see `of`
            and `from_weights`.
        product_dtype: dtype of the matrix products and of the LSTMs' weights, `"float32"` or `"bfloat16"`; everything
            else is float32.
    """

    def __init__(self, config: config_lib.ModelConfig, product_dtype: str = "float32", **kwargs: Any):
        with float32_policy():
            super().__init__(trainable=False, **kwargs)
            self.config = config
            self.supports_jit = False  # as `CharCNN`; and the number of real tokens varies
            self.product_dtype = product_dtype
            self.char_cnn = new_char_cnn(config, product_dtype)
            self.char_cnn.trainable = False
            numbers = range(config.lstm.num_layers)
            self.lstms = [
                [_PackedLSTMP(config.lstm, product_dtype, name=f"{direction}_{n}") for n in numbers]
                for direction in DIRECTIONS
            ]
        self.built = True

    @classmethod
    def from_weights(
        cls, config: config_lib.ModelConfig, weights: Mapping[str, np.ndarray], product_dtype: str = "float32"
    ) -> Self:
        """Returns the network with the weights of a `BiLM`, by the names of `variables.relative_names`."""
        bilm = cls(config, product_dtype)
        for name, variable in relative_names(bilm).items():
            if name in weights:  # those of the LSTMs have other names and another layout here
                variable.assign(weights[name])
        for direction, stack in zip(DIRECTIONS, bilm.lstms, strict=True):
            for number, layer in enumerate(stack):
                stored = (weights.get(f"{direction}_{number}/{name}") for name in lstmp_packed.STORED)
                layer.assign_kernels(lstmp_packed.kernels(*stored, dtype="float32"))
        return bilm


class _PackedLSTMP(Tracked, keras.layers.Layer):
    """The weights of an LSTM as `lstmp_packed.Kernels` of the products' dtype."""

    collections = ("_kernels",)

    def __init__(self, config: config_lib.LSTMConfig, product_dtype: str, **kwargs: Any):
        super().__init__(trainable=False, **kwargs)
        self._product_dtype, self._input_dim = product_dtype, config.projection_dim
        self._kernels = {
            name: self.add_weight(name=name, shape=shape, dtype=product_dtype, initializer="zeros", trainable=False)
            for name, shape in lstmp_packed.shapes(config.units, config.projection_dim, product_dtype).items()
        }
        self.built = True

    def kernels(self, dtype: str | None = None) -> lstmp_packed.Kernels:
        """Returns the weights as tensors; `dtype` is the products' by default."""
        kernels = {name: tf.cast(weight, dtype or self._product_dtype) for name, weight in self._kernels.items()}
        return lstmp_packed.Kernels(**kernels)

    def assign_kernels(self, kernels: lstmp_packed.Kernels) -> None:
        """Sets the weights to those of float32 kernels."""
        if self._product_dtype != "float32":
            weights = lstmp_packed.unpacked(kernels, self._input_dim)
            kernels = lstmp_packed.kernels(*weights, dtype=self._product_dtype)
        for name, variable in self._kernels.items():
            variable.assign(getattr(kernels, name))
