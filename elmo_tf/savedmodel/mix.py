"""The mix of layers in an export: parsed from text, built as a layer."""

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import ScalarMix, one_layer


def parse_mix(mix: str, num_layers: int) -> list[float]:
    """Returns the scalar parameters that a text stands for.

    Args:
        mix: `average`, `top`, or numbers between commas, the token layer's first.
        num_layers: biLSTM layers; there is one parameter more.

    Raises:
        InputError: if `mix` is none of these, or does not have `num_layers` + 1 finite numbers.
    """
    if mix == "average":
        return [0.0] * (num_layers + 1)
    if mix == "top":
        return one_layer(num_layers, num_layers + 1)
    try:
        numbers = [float(number) for number in mix.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != num_layers + 1 or not all(map(_is_finite, numbers)):
        raise InputError("mix", f"average, top or {num_layers + 1} numbers between commas", repr(mix))
    return numbers


def build_mix(num_layers: int, scalar_parameters: list[float] | None, gamma: float) -> ScalarMix:
    """Returns a mix with these values, built.

    Args:
        num_layers: layers to mix, the token layer included.
        scalar_parameters: one a layer, before the softmax; None: all zero, the average.
        gamma: scale of the mixed vector.

    Raises:
        InputError: if there is not one parameter a layer, or `gamma` is not finite.
    """
    mix = ScalarMix(num_layers, name="scalar_mix")
    mix.build(None)
    if scalar_parameters is not None:
        if len(scalar_parameters) != num_layers:
            raise InputError("scalar_parameters", f"{num_layers} numbers, one a layer", len(scalar_parameters))
        mix.scalar_parameters.assign(scalar_parameters)
    if not _is_finite(gamma):
        raise InputError("gamma", "a finite number", gamma)
    mix.gamma.assign(gamma)
    return mix


def _is_finite(number: float) -> bool:
    """Returns whether float32 can hold the number."""
    return abs(number) <= float(np.finfo(np.float32).max)
