"""The mix of layers that an export gets: from text to a built layer."""

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import ScalarMix, one_layer


def parse_mix(text: str, num_layers: int) -> list[float]:
    """Returns the scalar parameters of a mix: `average`, `top`, or numbers between commas, the token layer's first.

    Raises:
        InputError: if it is none of these, or there is not one number for each of `num_layers` + 1 layers.
    """
    if text == "average":
        return [0.0] * (num_layers + 1)
    if text == "top":
        return one_layer(num_layers, num_layers + 1)
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != num_layers + 1 or not all(map(_is_finite, numbers)):
        raise InputError(f"--mix: expected average, top or {num_layers + 1} numbers between commas, found {text!r}")
    return numbers


def build_mix(num_layers: int, scalar_parameters: list[float] | None, gamma: float) -> ScalarMix:
    """Returns a mix of `num_layers` layers, the token layer included, with these values.

    Args:
        scalar_parameters: one a layer, before the softmax; None: all zero, the average.
        gamma: scale of the mixed vector.

    Raises:
        InputError: if there is not one parameter a layer, or `gamma` is not finite.
    """
    mix = ScalarMix(num_layers, name="scalar_mix")
    mix.build(None)
    if scalar_parameters is not None:
        if len(scalar_parameters) != num_layers:
            raise InputError(f"--mix: expected {num_layers} numbers, one a layer, found {len(scalar_parameters)}")
        mix.scalar_parameters.assign(scalar_parameters)
    if not _is_finite(gamma):
        raise InputError(f"--gamma: expected a finite number, found {gamma}")
    mix.gamma.assign(gamma)
    return mix


def _is_finite(number: float) -> bool:
    """Whether float32 can hold it."""
    return abs(number) <= float(np.finfo(np.float32).max)
