"""The mix of layers in an export."""

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.layers.float32 import float32_policy
from elmo_tf.layers.scalar_mix import Mix, ScalarMix, parse_mix


@float32_policy()
def build_mix(num_layers: int, mix: Mix, gamma: float) -> ScalarMix:
    """Returns a mix with these values, built.

    Args:
        num_layers: layers to mix, the token layer included.
        mix: as for `parse_mix`.
        gamma: scale of the mixed vector.

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
