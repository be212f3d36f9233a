"""`elmo_tf.reference` in float64, with the weights of TensorFlow's layers, for what the tests compare with it."""

import numpy as np

from elmo_tf import reference
from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.model.variables import relative_names

Weights = dict[str, np.ndarray]


def weights_of(bilm) -> Weights:
    """Returns the weights of a BiLM by name, the softmax's included."""
    return {name: np.asarray(variable, np.float64) for name, variable in relative_names(bilm).items()}


def weights_of_lstmp(layer) -> tuple:
    """Returns an LSTMP's kernel, bias and projection kernel (or None)."""
    variables = layer.kernel, layer.bias, layer.projection_kernel
    return tuple(None if variable is None else np.asarray(variable, np.float64) for variable in variables)


def encode(token: bytes, max_chars: int = 50) -> list[int]:
    """Character ids of a token, as DESIGN.md describes them; `text.char_ids` computes them in another way."""
    mark = {b"<S>": [257], b"</S>": [258]}
    inner = mark.get(token, [byte + 1 for byte in token[: max_chars - 2]])
    return ([259, *inner, 260] + [261] * max_chars)[:max_chars]


def char_cnn(weights: Weights, config: CharCNNConfig, ids) -> np.ndarray:
    """The vectors of tokens, each from its own ids alone."""
    return np.concatenate([reference.char_cnn(weights, np.array([token]), config) for token in ids])


def layers(weights: Weights, config: ModelConfig, tokens: list[bytes]) -> np.ndarray:
    """The biLM's layers of one sentence, `(num_layers + 1, len(tokens), 2 * projection_dim)`."""
    return reference.NumpyBiLM(config, weights, np.float64).layers([tokens])[0]


def lstmp(inputs, state, kernel, bias, projection=None, cell_clip=None, proj_clip=None):
    """A projected LSTM over `(time, dim)` or `(time, batch, dim)`; returns outputs and the final (cell, recurrent)."""
    lstm = reference.new_lstm([(kernel, bias, projection)], np.float64)
    final = tuple(np.array(part, np.float64).reshape(1, -1, part.shape[-1]) for part in state)
    x = np.asarray(inputs, np.float64).reshape(1, -1, inputs.shape[-1])
    clips = LSTMConfig(bias.shape[-1] // 4, final[1].shape[-1], 1, cell_clip, proj_clip)
    outputs = reference.run_lstm(lstm, x, [x.shape[1] // len(inputs)] * len(inputs), final, clips)
    outputs = outputs.reshape(*inputs.shape[:-1], -1)
    return outputs, tuple(part.reshape(before.shape) for part, before in zip(final, state, strict=True))


def direction(weights: Weights, config: ModelConfig, number: int, ids):
    """One direction's stack over tokens from the zero state; returns each layer's outputs, and (cell, recurrent)."""
    vectors = char_cnn(weights, config.char_cnn, ids)
    bilm = reference.NumpyBiLM(config, weights, np.float64)
    states = bilm.zero_states(1)
    outputs = bilm.run(np.stack([vectors] * 2), [1] * len(vectors), states)  # both directions read the same tokens
    return [layer[number] for layer in outputs[1:]], [tuple(part[number, 0] for part in state) for state in states]


def softmax_losses(softmax, inputs, targets) -> np.ndarray:
    """Negative log-likelihoods in nats of `(num_tokens,)` targets given `(num_tokens, dim)` inputs, full softmax."""
    return -reference.log_softmax(inputs, *softmax)[np.arange(len(targets)), targets]


def direction_losses(weights: Weights, config: ModelConfig, number: int, char_ids, targets) -> np.ndarray:
    """One direction's losses of one stream from the zero state: `(time, max_chars)` ids, `(time,)` targets."""
    outputs, _ = direction(weights, config, number, char_ids)
    return softmax_losses((weights["softmax/kernel"], weights["softmax/bias"]), outputs[-1], targets)
