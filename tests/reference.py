"""The network and its training step in NumPy float64, as DESIGN.md's section 3 describes them and nothing more."""

import dataclasses

import numpy as np

from elmo_tf.config import ModelConfig


@dataclasses.dataclass
class Weights:
    """A BiLM's weights as float64 arrays."""

    embedding: np.ndarray  # (261, embedding_dim); row 0 is that of id 1
    convolutions: list  # (kernel (width, embedding_dim, count), bias (count,))
    highways: list  # (gate kernel, gate bias, transform kernel, transform bias)
    projection: tuple | None  # (kernel, bias)
    lstms: list  # [direction][layer]: (kernel, bias, projection kernel or None)
    softmax: tuple | None  # (kernel (vocab_size, dim), bias)


def _arrays(*variables) -> tuple:
    return tuple(None if variable is None else np.asarray(variable, np.float64) for variable in variables)


def weights_of_char_cnn(layer) -> dict:
    """Returns the fields of `Weights` that a CharCNN holds."""
    return {
        "embedding": _arrays(layer.embedding)[0],
        "convolutions": [_arrays(*pair) for pair in zip(layer.kernels, layer.biases, strict=True)],
        "highways": [_arrays(h.gate_kernel, h.gate_bias, h.transform_kernel, h.transform_bias) for h in layer.highways],
        "projection": layer.projection and _arrays(layer.projection.kernel, layer.projection.bias),
    }


def weights_of_lstmp(layer) -> tuple:
    """Returns an LSTMP's kernel, bias and projection kernel (or None)."""
    return _arrays(layer.kernel, layer.bias, layer.projection_kernel)


def weights_of(bilm) -> Weights:
    """Returns the weights of a BiLM."""
    lstms = [[weights_of_lstmp(layer) for layer in layers] for layers in bilm.lstms]
    softmax = bilm.softmax and _arrays(bilm.softmax.kernel, bilm.softmax.bias)
    return Weights(**weights_of_char_cnn(bilm.char_cnn), lstms=lstms, softmax=softmax)


def encode(token: bytes, max_chars: int = 50) -> list[int]:
    """Character ids of a token."""
    mark = {b"<S>": [257], b"</S>": [258]}
    inner = mark.get(token, [byte + 1 for byte in token[: max_chars - 2]])
    return ([259, *inner, 260] + [261] * max_chars)[:max_chars]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def highway(x, gate_kernel, gate_bias, transform_kernel, transform_bias):
    gate = sigmoid(x @ gate_kernel + gate_bias)
    return gate * np.maximum(x @ transform_kernel + transform_bias, 0) + (1 - gate) * x


def char_cnn(weights: Weights, ids, activation: str = "relu"):
    """The vector of one token, from all of its ids."""
    characters = np.concatenate([np.zeros_like(weights.embedding[:1]), weights.embedding])[ids]
    maxima = []
    for kernel, bias in weights.convolutions:
        starts = range(len(ids) - len(kernel) + 1)
        windows = np.stack([characters[start : start + len(kernel)] for start in starts])
        maxima.append(np.tensordot(windows, kernel, 2).max(0) + bias)
    vector = np.concatenate(maxima)
    vector = np.maximum(vector, 0) if activation == "relu" else np.tanh(vector)
    for one in weights.highways:
        vector = highway(vector, *one)
    return vector if weights.projection is None else vector @ weights.projection[0] + weights.projection[1]


def lstmp(inputs, state, kernel, bias, projection=None, cell_clip=None, proj_clip=None):
    """A projected LSTM over `(time, dim)` or `(time, batch, dim)`; returns outputs and the final (cell, recurrent)."""
    cell, recurrent = state
    outputs = []
    for x in inputs:
        i, j, f, o = np.split(np.concatenate([x, recurrent], -1) @ kernel + bias, 4, -1)
        cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(j)
        cell = cell if cell_clip is None else np.clip(cell, -cell_clip, cell_clip)
        recurrent = sigmoid(o) * np.tanh(cell)
        if projection is not None:
            recurrent = recurrent @ projection
            recurrent = recurrent if proj_clip is None else np.clip(recurrent, -proj_clip, proj_clip)
        outputs.append(recurrent)
    return np.stack(outputs), (cell, recurrent)


def direction(inputs, states, lstms, config: ModelConfig):
    """One direction's stack over `(time, dim)`; returns each layer's outputs and each layer's final state."""
    outputs, final_states = [], []
    for number, (weights, state) in enumerate(zip(lstms, states, strict=True)):
        values, final = lstmp(inputs, state, *weights, config.lstm.cell_clip, config.lstm.proj_clip)
        inputs = values + inputs if number and config.lstm.use_skip_connections else values
        outputs.append(inputs)
        final_states.append(final)
    return outputs, final_states


def zero_states(config: ModelConfig):
    """One direction's states before a first token."""
    lstm = config.lstm
    return [(np.zeros(lstm.units), np.zeros(lstm.projection_dim))] * lstm.num_layers


def layers(weights: Weights, config: ModelConfig, tokens: list[bytes]):
    """The biLM's layers of one sentence, `(num_layers + 1, len(tokens), 2 * projection_dim)`."""
    cnn = config.char_cnn
    ids = [encode(token, cnn.max_chars_per_token) for token in [b"<S>", *tokens, b"</S>"]]
    vectors = np.stack([char_cnn(weights, one, cnn.activation) for one in ids])
    ahead, _ = direction(vectors[:-1], zero_states(config), weights.lstms[0], config)
    back, _ = direction(vectors[:0:-1], zero_states(config), weights.lstms[1], config)
    pairs = [(vectors[1:-1],) * 2, *((a[1:], b[:0:-1]) for a, b in zip(ahead, back, strict=True))]
    return np.stack([np.concatenate(pair, -1) for pair in pairs])


def scalar_mix(values, scalar_parameters, gamma):
    """The weighted sum of `(num_layers + 1, ...)` layers."""
    weights = np.exp(scalar_parameters) / np.exp(scalar_parameters).sum()
    return gamma * np.tensordot(weights, values, 1)


def softmax_losses(softmax, inputs, targets):
    """Negative log-likelihoods in nats of `(num_tokens,)` targets given `(num_tokens, dim)` inputs, full softmax."""
    logits = inputs @ softmax[0].T + softmax[1]
    return np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(targets)), targets]


def direction_losses(weights: Weights, config: ModelConfig, number: int, char_ids, targets):
    """One direction's losses of one stream from the zero state: `(time, max_chars)` ids, `(time,)` targets."""
    vectors = np.stack([char_cnn(weights, ids, config.char_cnn.activation) for ids in char_ids])
    outputs, _ = direction(vectors, zero_states(config), weights.lstms[number], config)
    return softmax_losses(weights.softmax, outputs[-1], targets)


def adagrad_step(variables, accumulators, gradients, learning_rate, clip_norm):
    """One clip by the global norm of all gradients, then Adagrad without epsilon; returns variables, accumulators."""
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    gradients = [gradient * min(1, clip_norm / norm) for gradient in gradients]
    accumulators = [a + g**2 for a, g in zip(accumulators, gradients, strict=True)]
    moves = [learning_rate * g / np.sqrt(a) for g, a in zip(gradients, accumulators, strict=True)]
    return [v - move for v, move in zip(variables, moves, strict=True)], accumulators


def lazy_adam_step(variables, moments, gradients, step, learning_rate, beta_1, beta_2, clip_norm):
    """One clip by the global norm, then Adam for the rows whose gradient is not all zero; returns variables, moments.

    `moments` are the lists of means and squares; `step` the number of steps before.
    """
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))
    gradients = [gradient * min(1.0, clip_norm / norm) for gradient in gradients]
    used = [g != 0 if g.ndim == 1 else np.any(g != 0, -1, keepdims=True) for g in gradients]
    updated = []
    for mean, square, g in zip(*moments, gradients, strict=True):
        updated.append((beta_1 * mean + (1 - beta_1) * g, beta_2 * square + (1 - beta_2) * g**2))
    means = [np.where(u, new[0], old) for u, new, old in zip(used, updated, moments[0], strict=True)]
    squares = [np.where(u, new[1], old) for u, new, old in zip(used, updated, moments[1], strict=True)]
    unbiased = [
        (mean / (1 - beta_1 ** (step + 1)), square / (1 - beta_2 ** (step + 1)))
        for mean, square in zip(means, squares, strict=True)
    ]
    moves = [np.where(u, m / (np.sqrt(s) + 1e-8), 0.0) for u, (m, s) in zip(used, unbiased, strict=True)]
    return [v - learning_rate * move for v, move in zip(variables, moves, strict=True)], [means, squares]


def orthogonal(matrix):
    """Muon's five Newton-Schulz steps on a matrix of at most as many rows as columns, with Jordan's coefficients."""
    matrix = matrix / np.linalg.norm(matrix)
    for _ in range(5):
        gram = matrix @ matrix.T
        matrix = 3.4445 * matrix + (-4.7750 * gram + 2.0315 * gram @ gram) @ matrix
    return matrix


def muon_step(blocks, means, gradients, learning_rate, scale, weight_decay):
    """Muon with Nesterov momentum 0.95 for blocks of a matrix, each wide; returns the blocks and the means."""
    means = [0.95 * mean + 0.05 * gradient for mean, gradient in zip(means, gradients, strict=True)]
    ahead = [0.95 * mean + 0.05 * gradient for mean, gradient in zip(means, gradients, strict=True)]
    moves = [scale * np.sqrt(one.shape[1]) * orthogonal(one) for one in ahead]
    decayed = [(1 - learning_rate * weight_decay) * block for block in blocks]
    return [block - learning_rate * move for block, move in zip(decayed, moves, strict=True)], means
