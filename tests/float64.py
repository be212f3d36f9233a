"""`elmo_tf.reference`, which computes in float64, with the weights of TensorFlow's layers, for what tests compare."""

import numpy as np

from elmo_tf import reference
from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.model.variables import relative_names

Weights = dict[str, np.ndarray]
encode = reference.char_ids


def weights_of(bilm) -> Weights:
    """Returns the weights of a BiLM by name, the softmax's included."""
    return {name: np.asarray(variable, np.float64) for name, variable in relative_names(bilm).items()}


def weights_of_lstmp(layer) -> tuple:
    """Returns an LSTMP's kernel, bias and projection kernel (or None)."""
    variables = layer.kernel, layer.bias, layer.projection_kernel
    return tuple(None if variable is None else np.asarray(variable, np.float64) for variable in variables)


def char_cnn(weights: Weights, config: CharCNNConfig, ids) -> np.ndarray:
    """The vectors of tokens, each from its own ids alone."""
    return np.array([reference.token_vector(weights, token, config) for token in ids])


def layers(weights: Weights, config: ModelConfig, tokens: list[bytes]) -> np.ndarray:
    """The biLM's layers of one sentence, `(num_layers + 1, len(tokens), 2 * projection_dim)`."""
    return reference.layers(weights, config, tokens)


def lstmp(inputs, state, kernel, bias, projection=None, cell_clip=None, proj_clip=None):
    """A projected LSTM over `(time, dim)` or `(time, batch, dim)`; returns outputs and the final (cell, recurrent)."""
    sizes = LSTMConfig(bias.shape[-1] // 4, state[1].shape[-1], 1, cell_clip, proj_clip)
    return reference.lstm(np.float64(inputs), tuple(map(np.float64, state)), kernel, bias, projection, sizes)


def direction(weights: Weights, config: ModelConfig, number: int, ids):
    """One direction's stack over tokens from the zero state; returns each layer's outputs, and (cell, recurrent)."""
    vectors = char_cnn(weights, config.char_cnn, ids)
    outputs, states = reference.read(weights, config, ("forward", "backward")[number], vectors)
    return outputs[1:], states


def softmax_losses(softmax, inputs, targets) -> np.ndarray:
    """Negative log-likelihoods in nats of `(num_tokens,)` targets given `(num_tokens, dim)` inputs, full softmax."""
    return -reference.log_softmax(inputs, *softmax)[np.arange(len(targets)), targets]


def direction_losses(weights: Weights, config: ModelConfig, number: int, char_ids, targets) -> np.ndarray:
    """One direction's losses of one stream from the zero state: `(time, max_chars)` ids, `(time,)` targets."""
    outputs, _ = direction(weights, config, number, char_ids)
    return softmax_losses((weights["softmax/kernel"], weights["softmax/bias"]), outputs[-1], targets)
