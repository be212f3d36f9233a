"""Mixes of the layers of any model of tokens, in the place of ELMo's."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.model.cached_layers import CachedLayers
from elmo_tf.model.scalar_mix import Mix, ScalarMix, parse_mix
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.model.variables import Tracked


@keras.saving.register_keras_serializable("elmo_tf")
class MixedLayers(Tracked, keras.layers.Layer):
    """Learned mixes of the layers of a frozen model of tokens, as `elmo_tf.ELMo` has them of a biLM.

    A `.keras` file contains the model; a program that loads it has to import the model's class first.

    Args:
        model: a Keras layer from tokens, string `(batch, time)`, padded on the right with `""`, to its layers, float32
            `(batch, num_layers, time, dim)`, 0 at padding.
        num_mixes, mix, penalty, layer_norm, dropout_rate, gamma: as for `elmo_tf.ELMo`.

    Call arguments:
        tokens: as for `model`.
        training: whether to apply dropout.

    Returns:
        float32 `(batch, time, dim)` with a Keras mask; a list of these for several mixes.

    Raises:
        InputError: if `model` returns another shape.
    """

    collections = ("mixes",)

    def __init__(
        self,
        model: keras.layers.Layer,
        num_mixes: int = 1,
        mix: Mix = "learned",
        penalty: float = 0.0,
        layer_norm: bool = False,
        dropout_rate: float = 0.0,
        gamma: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.supports_jit = False  # XLA has no strings
        self.settings: dict[str, Any] = {
            **{"num_mixes": num_mixes, "mix": mix, "penalty": penalty},
            **{"layer_norm": layer_norm, "dropout_rate": dropout_rate, "gamma": gamma},
        }
        model.trainable = False
        self.model = model
        shape = model.compute_output_spec(keras.KerasTensor((None, None), "string")).shape
        if len(shape) != 4 or None in (shape[1], shape[3]):
            raise InputError("model", "a layer that returns (batch, num_layers, time, dim)", f"{model.name}: {shape}")
        self.num_layers, self.dim = shape[1], shape[3]
        parameters = None if mix == "learned" else parse_mix(mix, self.num_layers)
        self.mixes = [
            ScalarMix(self.num_layers, parameters, penalty, layer_norm, gamma, name=f"mix_{number}")
            for number in range(num_mixes)
        ]
        for scalar_mix in self.mixes:
            scalar_mix.build(None)
        self.dropout = keras.layers.Dropout(dropout_rate)
        self.token_mask = TokenMask()
        self.cached_layers: CachedLayers | None = None
        self.built = True

    def call(self, tokens, training=False):
        layers = tf.stop_gradient((self.model if self.cached_layers is None else self.cached_layers)(tokens))
        return self._single_or_list([self.dropout(mix(layers), training=training) for mix in self.mixes])

    def remember(self, sentences: Iterable[Sequence[str | bytes]] | CachedLayers, folder: str | os.PathLike) -> None:
        """Computes the layers of sentences once, and keeps them: see `elmo_tf.ELMo.remember`."""
        if not isinstance(sentences, CachedLayers):
            sentences = CachedLayers(sentences, self.model, self.num_layers, self.dim, folder)
        self.cached_layers = sentences

    def compute_mask(self, tokens, previous_mask=None):
        return self._single_or_list([self.token_mask(tokens)] * len(self.mixes))

    def compute_output_spec(self, tokens, training=False):
        shape = (*tokens.shape, self.dim)
        return self._single_or_list([keras.KerasTensor(shape, self.compute_dtype) for _ in self.mixes])

    def get_config(self):
        return super().get_config() | self.settings | {"model": keras.saving.serialize_keras_object(self.model)}

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"model": keras.saving.deserialize_keras_object(config["model"])})

    def _single_or_list(self, values: list[Any]) -> Any:
        return values if len(values) > 1 else values[0]
