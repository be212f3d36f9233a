"""The mix of layers in an export."""

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.layers.float32 import float32_policy
from elmo_tf.layers.scalar_mix import Mix, ScalarMix, parse_mix


@float32_policy()
def build_mix(num_layers: int, mix: Mix, gamma: float) -> ScalarMix:
    """Returns a built mix of so many layers with the scalar parameters `parse_mix(mix)`.

    Raises:
        InputError: if `mix` is none, or float32 cannot hold `gamma`.
    """
    built = ScalarMix(num_layers, name="scalar_mix")
    built.build(None)
    built.scalar_parameters.assign(parse_mix(mix, num_layers))
    if not abs(gamma) <= float(np.finfo(np.float32).max):
        raise InputError("gamma", "a finite number", gamma)
    built.gamma.assign(gamma)
    return built
