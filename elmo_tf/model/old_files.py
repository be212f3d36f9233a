"""Weights in `.keras` files that were written before LSTMs had one layout of weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from elmo_tf.model.variables import DIRECTIONS

_COLUMNS = 16  # zeros after the gates
_LAYER = "layers/lstmp"  # the paths of LSTMs in a biLM: `layers/lstmp`, `layers/lstmp_1`, ... of both directions
# Of a frozen network, by direction and layer: `lstms/container_1/__packed_lstmp` is `backward_0`.
_PACKED = "lstms/container{}/__packed_lstmp{}"


def lstmp_variables(store: Any, lstm: Any) -> Mapping[str, np.ndarray]:
    """Returns the variables of an `LSTMP` by number, as Keras stores them.

    Args:
        store: Keras's store of variables, at the path of the layer.
        lstm: the layer, named by its place in the network, such as `backward_1`.
    """
    path = getattr(store, "_h5_entry_path", None)
    if len(store) or not path or _LAYER not in path:
        return store
    direction, number = lstm.name.split("_")
    suffixes = (f"_{n}" if n else "" for n in (DIRECTIONS.index(direction), int(number)))
    packed = store.get(path.rpartition(_LAYER)[0] + _PACKED.format(*suffixes))
    if not len(packed):
        return store
    from_input, recurrent, *projection = (packed[name] for name in sorted(packed.keys()))
    from_input, recurrent = from_input[:, :-_COLUMNS], recurrent[:, :-_COLUMNS]
    bias, units = from_input[-1].copy(), recurrent.shape[1] // 4
    bias[2 * units : 3 * units] -= 1  # the stored bias includes the forget gate's 1
    variables = [np.concatenate([from_input[:-1], recurrent]), bias, *projection]
    return {str(n): values for n, values in enumerate(variables)}
