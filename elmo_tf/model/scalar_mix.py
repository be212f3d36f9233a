"""The weighted sum of a biLM's layers, and the ways to specify its scalar parameters."""

import numbers
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.model import bilm
from elmo_tf.model.variables import float32_policy


@keras.saving.register_keras_serializable("elmo_tf")
class ScalarMix(keras.layers.Layer):
    """`gamma * sum_j softmax(scalar_parameters)_j layer_j`, the ELMo vector of a task.

    Args:
        num_layers: layers to mix, the token layer included.
        scalar_parameters: fixed numbers, one per layer; None: learned, from 0.
        penalty: lambda; `lambda * sum_j scalar_parameters_j^2` is added to the loss, if they are learned. It applies
            before the softmax, as in bilm-tf, so a large lambda makes the mix an average.
        layer_norm: whether to normalize each layer's vector of a token to mean 0 and variance 1 over its features
            first. bilm-tf normalizes all tokens of a batch together.
        gamma: a fixed scale; None: learned, from 1.

    Call arguments:
        layers: float32 `(batch, num_layers, time, dim)`.

    Returns:
        float32 `(batch, time, dim)`.

    Reference:
        Peters et al. 2018, equation 1 and section 3.4; bilm-tf, `bilm/elmo.py`, `weight_layers`.
    """

    def __init__(
        self,
        num_layers: int,
        scalar_parameters: Sequence[float] | None = None,
        penalty: float = 0.0,
        layer_norm: bool = False,
        gamma: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.fixed_parameters = None if scalar_parameters is None else [float(number) for number in scalar_parameters]
        if self.fixed_parameters is not None and len(self.fixed_parameters) != num_layers:
            raise InputError("scalar_parameters", f"{num_layers} numbers, one per layer", self.fixed_parameters)
        if not 0 <= penalty < np.inf:
            raise InputError("penalty", "a number that is not negative", penalty)
        self.penalty = penalty
        self.layer_norm = layer_norm
        self.fixed_gamma = None if gamma is None else checked_gamma(gamma)

    def build(self, _):
        learned = self.fixed_parameters is None
        self.scalar_parameters = self.add_weight(
            name="scalar_parameters",
            shape=(self.num_layers,),
            # An initializer, because Keras may create the value later.
            initializer="zeros" if learned else lambda shape, dtype: tf.constant(self.fixed_parameters, dtype, shape),
            regularizer=keras.regularizers.L2(self.penalty) if learned and self.penalty else None,
            trainable=learned,
        )
        gamma = keras.initializers.Constant(1.0 if self.fixed_gamma is None else self.fixed_gamma)
        self.gamma = self.add_weight(name="gamma", shape=(), initializer=gamma, trainable=self.fixed_gamma is None)

    def call(self, layers):
        return bilm.scalar_mix(layers, self.scalar_parameters, self.gamma, self.layer_norm)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *input_shape[2:])

    def get_config(self):
        settings = {name: getattr(self, name) for name in ("num_layers", "penalty", "layer_norm")}
        return super().get_config() | settings | {"scalar_parameters": self.fixed_parameters, "gamma": self.fixed_gamma}


Mix = str | int | Sequence[float]


def checked_gamma(gamma: Any) -> float:
    """Returns gamma as a float; raises `InputError` unless float32 can hold it."""
    try:
        value = float(gamma)
    except (TypeError, ValueError):
        value = np.nan
    if not abs(value) <= np.finfo(np.float32).max:
        raise InputError("gamma", "a finite number", repr(gamma))
    return value


def parse_mix(mix: Mix, num_layers: int) -> list[float]:
    """Returns scalar parameters.

    Args:
        mix: `"average"`; `"top"`; the number of a layer, 0 being the token layer; or scalar parameters, one per layer,
            before the softmax. Numbers may be text, with commas between several.
        num_layers: layers to mix, the token layer included.

    Raises:
        InputError: if `mix` is none of these, or float32 cannot hold a parameter.
    """
    if isinstance(mix, str) and mix == "average":
        return [0.0] * num_layers
    if isinstance(mix, str) and mix == "top":
        return _single_layer(num_layers - 1, num_layers)
    try:
        parsed = [float(part) for part in mix.split(",")] if isinstance(mix, str) else mix
        values = np.array(parsed, np.float64)
    except (TypeError, ValueError):
        values = np.array(())
    if values.shape == (num_layers,) and np.all(np.abs(values) <= np.finfo(np.float32).max):
        return values.tolist()
    is_number = isinstance(mix, numbers.Integral) and not isinstance(mix, bool)
    if (is_number or isinstance(mix, str)) and values.size == 1 and values.item() in range(num_layers):
        return _single_layer(int(values.item()), num_layers)
    expected = f"average, top, a layer from 0 to {num_layers - 1} or {num_layers} finite numbers, one per layer"
    raise InputError("mix", expected, repr(mix))


@float32_policy()
def build_mix(num_layers: int, mix: Mix = "average", gamma: float = 1.0) -> ScalarMix:
    """Returns a built, learned mix that starts from `parse_mix(mix)` and gamma; `InputError` if either is refused."""
    built = ScalarMix(num_layers, name="scalar_mix")
    built.build(None)
    built.scalar_parameters.assign(parse_mix(mix, num_layers))
    built.gamma.assign(checked_gamma(gamma))
    return built


def _single_layer(number: int, num_layers: int) -> list[float]:
    """Returns scalar parameters that give all the weight to a single layer, even in float32."""
    return [100.0 * (layer == number) for layer in range(num_layers)]
