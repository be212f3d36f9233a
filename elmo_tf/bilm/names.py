"""What a biLM's weights are called: names relative to the biLM, whatever Keras scope it was made in."""

from collections.abc import Iterator

import keras

from elmo_tf.layers.char_cnn import CharCNN

DIRECTIONS = ("forward", "backward")


def relative_names(bilm) -> dict[str, keras.Variable]:
    """Returns a biLM's weights by name, in the order of its `weights`.

    Examples: `char_cnn/embedding`, `char_cnn/highway_0/gate_kernel`, `forward_1/projection_kernel`, `softmax/bias`.

    Args:
        bilm: a `BiLM` or a `PackedBiLM`, whose LSTMs have other weights: `forward_0/recurrent`.
    """
    named = {f"char_cnn/{name}": variable for name, variable in _of_char_cnn(bilm.char_cnn)}
    for direction, layers in zip(DIRECTIONS, bilm.lstms, strict=True):
        for number, layer in enumerate(layers):
            named |= {f"{direction}_{number}/{name}": variable for name, variable in _own(layer)}
    if getattr(bilm, "softmax", None) is not None:
        named |= {f"softmax/{name}": variable for name, variable in _own(bilm.softmax)}
    names = {id(variable): name for name, variable in named.items()}
    return {names[id(variable)]: variable for variable in bilm.weights}


def _of_char_cnn(char_cnn: CharCNN) -> Iterator[tuple[str, keras.Variable]]:
    inner = [layer for layer in (*char_cnn.highways, char_cnn.projection) if layer is not None]
    of_inner = {id(variable) for layer in inner for variable in layer.variables}
    yield from ((variable.name, variable) for variable in char_cnn.variables if id(variable) not in of_inner)
    for layer in inner:
        yield from ((f"{layer.name}/{name}", variable) for name, variable in _own(layer))


def _own(layer: keras.layers.Layer) -> Iterator[tuple[str, keras.Variable]]:
    return ((variable.name, variable) for variable in layer.variables)
