"""A biLM's weights by names that depend on its structure alone, wherever it was built."""

import keras

from elmo_tf.bilm.model import DIRECTIONS, BiLM


def relative_names(bilm: BiLM) -> dict[str, keras.Variable]:
    """Returns the weights by their names relative to `bilm`, in the order of `bilm.trainable_variables`.

    `variable.path` also has the name scopes and the layers that the biLM was built in.
    """
    cnn = bilm.char_cnn
    found = {"char_cnn/embedding": cnn.embedding}
    for number, (kernel, bias) in enumerate(zip(cnn.kernels, cnn.biases, strict=True)):
        found |= {f"char_cnn/kernel_{number}": kernel, f"char_cnn/bias_{number}": bias}
    layers = {f"char_cnn/highway_{number}": highway for number, highway in enumerate(cnn.highways)}
    if cnn.projection is not None:
        layers["char_cnn/projection"] = cnn.projection
    for direction, stack in zip(DIRECTIONS, bilm.lstms, strict=True):
        layers |= {f"{direction}_{number}": layer for number, layer in enumerate(stack)}
    if bilm.softmax is not None:
        layers["softmax"] = bilm.softmax
    for prefix, layer in layers.items():
        found |= {f"{prefix}/{variable.name}": variable for variable in layer.weights}
    return found
