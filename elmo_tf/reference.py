"""ELMo in NumPy, from a token's bytes to its vectors: one sentence at a time, in float64, to be read from the top.

It follows Peters et al. 2018, "Deep contextualized word representations" (arXiv 1802.05365), in the paper's symbols:

    t_k    token k of a sentence, k = 1 .. N; here the bytes of its UTF-8
    x_k    its vector from its characters alone (section 3.4)
    h_kj   layer j of token k, j = 0 .. L, forward and backward side by side; h_k0 = [x_k; x_k] (section 3.2)
    s_j    weights of the layers, with the scale gamma (equation 1)

The paper leaves the character CNN with highway layers to Kim et al. 2015 (arXiv 1508.06615), and the LSTM with a
projection to Sak et al. 2014 (arXiv 1402.1128). Details that all of them omit (clips, the forget gate's bias, the order
of the gates) follow bilm-tf, the program that trained the published weights, and are marked as such.

Only tests use it: they compare the trained network and both engines with it, and it with bilm-tf's vectors.
Weights are float64, by the names of `ModelConfig.weight_shapes`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig

Weights = Mapping[str, np.ndarray]
State = tuple[np.ndarray, np.ndarray]  # c (..., units) and h (..., projection_dim)


def layers(weights: Weights, config: ModelConfig, tokens: Sequence[bytes]) -> np.ndarray:
    """Returns h_kj of a sentence, `(L + 1, N, 2 * projection_dim)`; both directions start from zero states."""
    text = [char_ids(t, config.char_cnn.max_chars_per_token) for t in (b"<S>", *tokens, b"</S>")]
    x = np.array([token_vector(weights, ids, config.char_cnn) for ids in text])  # (N + 2, projection_dim)
    forward, _ = read(weights, config, "forward", x[:-1])  # <S> t_1 .. t_N
    backward, _ = read(weights, config, "backward", x[:0:-1])  # </S> t_N .. t_1
    return np.concatenate([forward[:, 1:], backward[:, :0:-1]], -1)


def char_ids(token: bytes, max_chars: int = 50) -> list[int]:
    """Returns the character ids of a token: its bytes + 1, between marks; 261 fills it up. bilm-tf's ids, plus 1."""
    inner = {b"<S>": [257], b"</S>": [258]}.get(token, [byte + 1 for byte in token[: max_chars - 2]])
    return ([259, *inner, 260] + [261] * max_chars)[:max_chars]


def token_vector(weights: Weights, ids: Sequence[int], config: CharCNNConfig) -> np.ndarray:
    """Returns x_k `(projection_dim,)` of a token, given its character ids."""
    characters = np.pad(weights["char_cnn/embedding"], ((1, 0), (0, 0)))[list(ids)]  # row 0, padding, is zero
    maxima = []
    for n, (width, count) in enumerate(config.filters):
        windows = [characters[start : start + width].ravel() for start in range(len(ids) - width + 1)]
        f = np.array(windows) @ weights[f"char_cnn/kernel_{n}"].reshape(-1, count) + weights[f"char_cnn/bias_{n}"]
        maxima.append(f.max(0))  # over all positions, fill included
    y = np.concatenate(maxima)  # (num_filters,)
    y = np.maximum(y, 0) if config.activation == "relu" else np.tanh(y)
    for n in range(config.num_highway):
        names = ("gate_kernel", "gate_bias", "transform_kernel", "transform_bias")
        w_t, b_t, w_h, b_h = (weights[f"char_cnn/highway_{n}/{name}"] for name in names)
        t = sigmoid(y @ w_t + b_t)  # lets the transformed y through; bilm-tf calls it `carry`
        y = t * np.maximum(y @ w_h + b_h, 0) + (1 - t) * y
    if "char_cnn/projection/kernel" not in weights:  # num_filters = projection_dim
        return y
    return y @ weights["char_cnn/projection/kernel"] + weights["char_cnn/projection/bias"]


def read(
    weights: Weights, config: ModelConfig, direction: str, x: np.ndarray, states: Sequence[State] | None = None
) -> tuple[np.ndarray, list[State]]:
    """Returns h_kj of one direction, `(L + 1, N, projection_dim)`, and each layer's state after the last token.

    Args:
        direction: `"forward"` or `"backward"`.
        x: the token vectors `(N, projection_dim)`, in the order in which the direction reads them.
        states: of each layer before the first token; None: zeros.
    """
    sizes, h, final = config.lstm, [x], []
    zeros = np.zeros(sizes.units), np.zeros(sizes.projection_dim)
    for j in range(sizes.num_layers):
        w, b = weights[f"{direction}_{j}/kernel"], weights[f"{direction}_{j}/bias"]
        w_p = weights.get(f"{direction}_{j}/projection_kernel")
        outputs, state = lstm(h[-1], states[j] if states else zeros, w, b, w_p, sizes)
        # Section 3.4: "a residual connection from the first to second layer"; the state has no part in it.
        h.append(outputs + h[-1] if j > 0 and sizes.use_skip_connections else outputs)
        final.append(state)
    return np.array(h), final


def lstm(
    x: np.ndarray, state: State, w: np.ndarray, b: np.ndarray, w_p: np.ndarray | None, config: LSTMConfig
) -> tuple[np.ndarray, State]:
    """Returns h `(N, ..., projection_dim)` of inputs x `(N, ..., input_dim)`, and the last c and h."""
    (c, h), outputs = state, []
    for x_k in x:
        i, j, f, o = np.split(np.concatenate([x_k, h], -1) @ w + b, 4, -1)  # in bilm-tf's order
        # bilm-tf: the forget gate's bias is stored without the 1.
        c = clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), config.cell_clip)
        h = sigmoid(o) * np.tanh(c)
        if w_p is not None:  # else h is the output of the cell itself
            h = clip(h @ w_p, config.proj_clip)
        outputs.append(h)
    return np.array(outputs), (c, h)


def clip(values: np.ndarray, bound: float | None) -> np.ndarray:
    """Returns values between +-bound, as bilm-tf clips c and h in training and in use."""
    return values if bound is None else np.clip(values, -bound, bound)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Returns 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def scalar_mix(h: np.ndarray, parameters: np.ndarray, gamma: float) -> np.ndarray:
    """Returns ELMo_k = gamma * sum_j s_j h_kj of `(L + 1, ...)`, s being the softmax of the parameters (equation 1)."""
    s = np.exp(parameters) / np.exp(parameters).sum()
    return gamma * np.tensordot(s, h, 1)


def log_softmax(h: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns log p of every word `(N, vocab_size)`, given one direction's top layer `(N, projection_dim)` (3.1)."""
    logits = h @ w.T + b
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
