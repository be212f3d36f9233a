"""The one walk through a biLM: both directions, layer after layer. Training and inference pass their own layers."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# For each layer of a direction the cell (rows, units) and the recurrent state (rows, projection_dim), float32.
DirectionState = tuple[tuple[tf.Tensor, tf.Tensor], ...]
# Both directions' states, forward first.
States = tuple[DirectionState, DirectionState]

# A tensor, or a tuple of tensors: whatever the layers take.
Values = Any
# A projected LSTM: values and state in, values and state out.
Layer = Callable[[Values, tuple[tf.Tensor, tf.Tensor]], tuple[Values, tuple[tf.Tensor, tf.Tensor]]]


def run_directions(
    layers: Sequence[Sequence[Layer]],
    inputs: Sequence[Values],
    initial_states: States,
    use_skip_connections: bool,
    dropout: Callable[[Values, int, int], Values] | None = None,
) -> tuple[list[list[Values]], States]:
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
    for direction, (stack, values, states) in enumerate(zip(layers, inputs, initial_states, strict=True)):
        found, final = [], []
        for number, (layer, initial) in enumerate(zip(stack, states, strict=True)):
            below = found[-1] if found else values
            seen = dropout(below, direction, number) if dropout else below
            output, state = layer(seen, initial)
            if number > 0 and use_skip_connections:
                output = tf.nest.map_structure(tf.add, output, seen)
            found.append(output)
            final.append(state)
        outputs.append(found)
        final_states.append(tuple(final))
    return outputs, tuple(final_states)
