"""The walk through a biLM: both directions, layer after layer. Training and inference pass their own layers."""

from collections.abc import Callable, Sequence

import tensorflow as tf

# For each layer of a direction the cell (rows, units) and the recurrent state (rows, projection_dim), float32.
DirectionState = tuple[tuple[tf.Tensor, tf.Tensor], ...]
# Both directions' states, forward first.
States = tuple[DirectionState, DirectionState]

# What a layer reads, and what it returns. In training: a tensor (batch, time, dim). In inference: a tuple of the packed
# positions (N, dim) and, unless these include the boundaries, of the direction's boundary (1 or batch, dim).
Vectors = tf.Tensor | tuple[tf.Tensor, ...]
# A projected LSTM: vectors and state in, vectors and state out.
Layer = Callable[[Vectors, tuple[tf.Tensor, tf.Tensor]], tuple[Vectors, tuple[tf.Tensor, tf.Tensor]]]


def run_directions(
    layers: Sequence[Sequence[Layer]],
    inputs: Sequence[Vectors],
    initial_states: States,
    use_skip_connections: bool,
    dropout: Callable[[Vectors, int, int], Vectors] | None = None,
) -> tuple[list[list[Vectors]], States]:
    """Runs both directions' LSTMs over token vectors.

    Args:
        layers: each direction's LSTMs, forward first.
        inputs: each direction's token vectors, in the order in which it reads them.
        initial_states: before the first token.
        use_skip_connections: whether every layer but the first adds its input to its output, but not to its state.
        dropout: applied to each layer's input; also takes the direction's and the layer's number.

    Returns:
        the outputs of each direction's layers, structured like its inputs, and the states after the last token.
    """
    outputs, final_states = [], []
    for direction, (stack, vectors, states) in enumerate(zip(layers, inputs, initial_states, strict=True)):
        layer_outputs, layer_states = [], []
        for number, (layer, initial) in enumerate(zip(stack, states, strict=True)):
            layer_input = layer_outputs[-1] if layer_outputs else vectors
            if dropout:
                layer_input = dropout(layer_input, direction, number)
            output, state = layer(layer_input, initial)
            if number > 0 and use_skip_connections:
                output = tf.nest.map_structure(tf.add, output, layer_input)
            layer_outputs.append(output)
            layer_states.append(state)
        outputs.append(layer_outputs)
        final_states.append(tuple(layer_states))
    return outputs, tuple(final_states)
