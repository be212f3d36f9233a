"""Names of a biLM's weights, relative to the biLM: they do not depend on the Keras scope that it was made in."""

from typing import Any

import keras

DIRECTIONS = ("forward", "backward")


def relative_names(bilm: Any) -> dict[str, keras.Variable]:
    """Returns a biLM's weights by name, in the order of its `weights`.

    Examples: `char_cnn/embedding`, `char_cnn/highway_0/gate_kernel`, `forward_1/projection_kernel`, `softmax/bias`.

    Args:
        bilm: a `BiLM` or a `PackedBiLM`, whose LSTMs have other weights: `forward_0/recurrent`.
    """
    layers = {"char_cnn": bilm.char_cnn}
    for inner in (*bilm.char_cnn.highways, bilm.char_cnn.projection):
        if inner is not None:
            layers[f"char_cnn/{inner.name}"] = inner
    for direction, stack in zip(DIRECTIONS, bilm.lstms, strict=True):
        layers |= {f"{direction}_{number}": layer for number, layer in enumerate(stack)}
    if getattr(bilm, "softmax", None) is not None:
        layers["softmax"] = bilm.softmax
    # The variables of `char_cnn` include those of its inner layers, whose names replace them.
    names = {id(v): f"{prefix}/{v.name}" for prefix, layer in layers.items() for v in layer.variables}
    return {names[id(variable)]: variable for variable in bilm.weights}
