"""The engine of an `Embedder` that computes in NumPy: the network of `reference.py`, many sentences at once.

Each distinct token goes through the character CNN once; sentences are packed without padding; both directions share
their products, and the gates one tanh. It has no gradients: `elmo_tf/model` trains.
"""

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.engines import Words
from elmo_tf.text import char_ids

if TYPE_CHECKING:
    from elmo_tf.sources import Source
    from elmo_tf.text.vocabulary import Softmax

LOGITS_AT_ONCE = 2**22  # 16 MB: smaller pieces make slow products, larger ones leave the cache
TOKENS_AT_ONCE = 64  # distinct tokens that go through the convolutions together
STEPS_AT_ONCE = 64  # time steps whose gates are in memory together


Weights = Mapping[str, np.ndarray]  # by name, such as `forward_0/kernel`; `ModelConfig.weight_shapes` lists them
# c and h of some sentences: (2, sentences, units), (2, sentences, projection_dim)
State = tuple[np.ndarray, np.ndarray]


class LSTM(NamedTuple):
    """One layer of both directions, forward first. The columns of all gates are side by side: i, j, f, o."""

    from_input: np.ndarray  # (2, input_dim, 4 * units)
    recurrent: np.ndarray  # (2, projection_dim, 4 * units)
    bias: np.ndarray  # (2, 1, 4 * units)
    projection: np.ndarray | None  # (2, units, projection_dim); None: h is the output of the cell itself


class NumpyEngine:
    """An `Engine` that computes in NumPy."""

    def __init__(self, source: "Source"):
        self._bilm, self._mix = NumpyBiLM(source.config, source.weights()), source.mix()
        self._read_softmax = functools.cache(source.softmax)
        self._lock = threading.Lock()  # several threads may ask for the first score

    def vectors(self, sentences: Sequence[Words], mixed: bool) -> list[np.ndarray]:
        layers = self._bilm.layers(sentences)
        return [scalar_mix(sentence, *self._mix) for sentence in layers] if mixed else layers

    def softmax(self) -> "Softmax":
        with self._lock:
            return self._read_softmax()

    def token_log_probs(self, sentences: Sequence[Words], token_ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        return [
            values[0] for values in self.predictions([[sentence] for sentence in sentences], token_ids, ranked=False)
        ]

    def predictions(
        self, passages: Sequence[Sequence[Words]], token_ids: Sequence[Sequence[int]], ranked: bool = True
    ) -> list[np.ndarray]:
        """Returns log-probabilities, as `token_log_probs`, and ranks of each sentence, float32 `(2, 2, tokens + 1)`.

        Both directions carry their states from each sentence of a passage to the next, as in training. Ranks
        are counted only if `ranked`, which takes 5 % of the time; otherwise they are 1.
        """
        # An output predicts what its direction reads next.
        targets = [np.array([ids[1:], ids[-2::-1]]) for ids in token_ids]
        outputs = np.concatenate(self._outputs(passages), 1)
        values = self._predicted(outputs.reshape(-1, outputs.shape[-1]), np.concatenate(targets, 1).ravel(), ranked)
        ends = np.cumsum([ids.shape[1] for ids in targets])[:-1]
        parts = np.split(values.reshape(2, 2, -1), ends, -1)
        return [np.stack([part[:, 0], part[:, 1, ::-1]], 1) for part in parts]

    def word_log_probs(self, tokens: Words, position: int) -> np.ndarray:
        """Returns the log-probability of every word at one position of a sentence, float32 `(2, vocab_size)`.

        Given the tokens before `position`, and given those after it.
        """
        ((forward, backward),) = self._outputs([[tokens]])
        kernel, bias, _ = self.softmax()
        return log_softmax(np.stack([forward[position], backward[-2 - position]]), kernel, bias)

    def _outputs(self, passages: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """Returns the top layer of each passage, `(2, positions, projection_dim)`, in the order of reading."""
        directions = ((b"<S>", 1), (b"</S>", -1))
        readings = [
            [[token for tokens in passage for token in (mark, *tokens[::step])] for mark, step in directions]
            for passage in passages
        ]
        return [layers[-1] for layers in self._bilm.read(readings)]

    def _predicted(self, outputs: np.ndarray, targets: np.ndarray, ranked: bool) -> np.ndarray:
        """Returns the log-probability of the target of each output, and its rank, `(2, targets)`."""
        kernel, bias, _ = self.softmax()
        values, num_rows = np.ones((2, len(targets)), np.float32), max(1, LOGITS_AT_ONCE // len(kernel))
        for start in range(0, len(targets), num_rows):
            rows = slice(start, start + num_rows)
            log_probs = log_softmax(outputs[rows], kernel, bias)
            values[0, rows] = log_probs[np.arange(len(log_probs)), targets[rows]]
            if ranked:
                values[1, rows] += np.count_nonzero(log_probs > values[0, rows, None], 1)
        return values


class NumpyBiLM:
    """A biLM: the layers of sentences.

    Args:
        config: the network's sizes.
        weights: all of them, by name; not modified.
        dtype: of the arithmetic and the results.
    """

    def __init__(self, config: ModelConfig, weights: Weights, dtype: type = np.float32):
        self.config = config
        names = [name for name in weights if name.startswith("char_cnn/")]
        self._char_cnn: dict[str, np.ndarray] = {name: np.asarray(weights[name], dtype) for name in names}
        self._lstms = [
            new_lstm(
                [
                    [weights.get(f"{direction}_{number}/{name}") for name in ("kernel", "bias", "projection_kernel")]
                    for direction in ("forward", "backward")
                ],
                dtype,
            )
            for number in range(config.lstm.num_layers)
        ]

    def layers(self, sentences: Sequence[Sequence[bytes]], boundaries: bool = False) -> list[np.ndarray]:
        """Returns h_kj of each sentence, `(num_layers + 1, N, 2 * projection_dim)`.

        The forward direction reads `<S> t_1 .. t_N`, the backward direction `</S> t_N .. t_1`, from zero states.

        Args:
            sentences: the tokens of each.
            boundaries: whether both read both boundaries, and these are returned as well: N + 2 positions.
        """
        texts = [[b"<S>", *tokens, b"</S>"] for tokens in sentences]
        last, first = (None, 0) if boundaries else (-1, 1)
        read = self.read([(tokens[:last], tokens[::-1][:last]) for tokens in texts])
        return [np.concatenate([h[:, 0, first:], h[:, 1, first:][:, ::-1]], -1) for h in read]

    def read(self, readings: Sequence[Sequence[Sequence[bytes]]]) -> list[np.ndarray]:
        """Returns h_kj of readings, `(num_layers + 1, 2, N, projection_dim)`, in the order in which they are read.

        A reading is the N tokens that the forward direction reads from the zero state, with `<S>`, and those that the
        backward direction reads.
        """
        # Half of the tokens of a text are repeats, and a token's vector does not depend on its sentence.
        words: dict[bytes, int] = {}
        numbers = [[[words.setdefault(t, len(words)) for t in tokens] for tokens in reading] for reading in readings]
        ids = char_ids.encode_tokens(list(words), self.config.char_cnn.max_chars_per_token)
        order, sizes, packed = pack(numbers)
        x = char_cnn(self._char_cnn, ids, self.config.char_cnn)[packed]
        layers = self.run(x, sizes, self.zero_states(len(readings)))
        # The rows of each sentence in `h`.
        starts, ranks = np.cumsum(sizes) - sizes, np.argsort(order)
        steps = [starts[: len(forward)] + rank for (forward, _), rank in zip(numbers, ranks, strict=True)]
        return [np.stack([h[:, rows] for h in layers]) for rows in steps]

    def run(self, x: np.ndarray, sizes: Sequence[int], states: Sequence[State]) -> list[np.ndarray]:
        """Returns the token vectors and each layer's output, `(2, positions, projection_dim)`.

        Args:
            x: the token vectors in the order of `pack`, in which each direction reads them.
            sizes: how many sentences reach each time step.
            states: of each layer before the first time step; they become those after each sentence's last step.
        """
        layers = [x]
        for lstm, state in zip(self._lstms, states, strict=True):
            h = run_lstm(lstm, layers[-1], sizes, state, self.config.lstm)
            # Section 3.4: "a residual connection from the first to second layer"; the state has no part in it.
            layers.append(h + layers[-1] if len(layers) > 1 and self.config.lstm.use_skip_connections else h)
        return layers

    def zero_states(self, num_sentences: int) -> list[State]:
        """Returns the states of each layer before a first token."""
        units, projection_dim = self.config.lstm.units, self.config.lstm.projection_dim
        shape, dtype = (2, num_sentences), self._lstms[0].bias.dtype
        return [(np.zeros((*shape, units), dtype), np.zeros((*shape, projection_dim), dtype)) for _ in self._lstms]


def char_cnn(weights: Weights, ids: np.ndarray, config: CharCNNConfig) -> np.ndarray:
    """Returns x_k of tokens `(n, projection_dim)`, given their character ids `(n, max_chars)`."""
    # Tokens of about the same length together: one long token would make all rows long.
    order = np.argsort(np.count_nonzero(ids != char_ids.PAD, 1), kind="stable")
    groups = [order[start : start + TOKENS_AT_ONCE] for start in range(0, len(order), TOKENS_AT_ONCE)]
    y = np.concatenate([convolutions(weights, ids[group], config) for group in groups])[np.argsort(order)]
    for n in range(config.num_highway):
        y = highway(y, *(weights[f"char_cnn/highway_{n}/{name}"] for name in HIGHWAY))
    if "char_cnn/projection/kernel" not in weights:  # the filters are as many as the projection is wide
        return y
    return y @ weights["char_cnn/projection/kernel"] + weights["char_cnn/projection/bias"]


def convolutions(weights: Weights, ids: np.ndarray, config: CharCNNConfig) -> np.ndarray:
    """Returns y `(n, num_filters)`: of each filter the maximum over all positions in the token."""
    # The row of id 0, padding, is zero; a real token is filled up with PAD, a character like any other.
    table = np.pad(weights["char_cnn/embedding"], ((1, 0), (0, 0)))
    # After the longest token all windows are the same: a single window is enough for the maximum.
    longest = np.count_nonzero(ids != char_ids.PAD, 1).max()
    characters = table[ids[:, : longest + max(width for width, _ in config.filters)]]
    maxima = []
    for n, (width, count) in enumerate(config.filters):
        num_windows = min(longest, ids.shape[1] - width) + 1
        windows = np.concatenate([characters[:, start : start + num_windows] for start in range(width)], -1)
        f = windows @ weights[f"char_cnn/kernel_{n}"].reshape(-1, count)  # (n, num_windows, count)
        maxima.append(f.max(1) + weights[f"char_cnn/bias_{n}"])
    y = np.concatenate(maxima, -1)
    return np.maximum(y, 0) if config.activation == "relu" else np.tanh(y)


HIGHWAY = ("gate_kernel", "gate_bias", "transform_kernel", "transform_bias")


def highway(y: np.ndarray, w_t: np.ndarray, b_t: np.ndarray, w_h: np.ndarray, b_h: np.ndarray) -> np.ndarray:
    """Returns z of `(n, num_filters)`; the gate t lets the transformed y through. bilm-tf calls it `carry`."""
    t = sigmoid(y @ w_t + b_t)
    return t * np.maximum(y @ w_h + b_h, 0) + (1 - t) * y


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Returns 1 / (1 + exp(-x)), which does not overflow in this form."""
    return (1 + np.tanh(x / 2)) / 2


def new_lstm(directions: Sequence[Sequence], dtype: type = np.float32) -> LSTM:
    """Returns a layer, given kernel, bias and projection kernel (or None) of each direction, as they are stored.

    A kernel is `(input_dim + projection_dim, 4 * units)`: the rows of the input, then those of the state.
    """
    kernels, biases, projections = zip(*directions, strict=True)
    kernel: np.ndarray = np.stack(kernels).astype(dtype, copy=False)
    bias: np.ndarray = np.stack(biases).astype(dtype, copy=False)
    projection: np.ndarray | None = None
    if projections[0] is not None:
        projection = np.stack(projections).astype(dtype, copy=False)
    units = bias.shape[-1] // 4
    bias[:, 2 * units : 3 * units] += 1  # bilm-tf: the forget gate's bias is stored without this 1
    # sigmoid(a) = (1 + tanh(a / 2)) / 2. With the columns of i, f and o halved here, one tanh serves all gates.
    for columns in (slice(units), slice(2 * units, None)):
        kernel[..., columns] /= 2
        bias[:, columns] /= 2
    projection_dim = units if projection is None else projection.shape[-1]
    return LSTM(kernel[:, :-projection_dim], kernel[:, -projection_dim:], bias[:, None], projection)


def run_lstm(lstm: LSTM, x: np.ndarray, sizes: Sequence[int], state: State, config: LSTMConfig) -> np.ndarray:
    """Returns h of every position, `(2, positions, projection_dim)`; arguments are those of `NumpyBiLM.run`.

    A single direction works as well as two. The input's part of the gates does not depend on the state: a
    single large product computes it for many time steps. Only the rest waits for the step before.
    """
    c, h = state
    outputs = np.empty((*x.shape[:2], h.shape[-1]), x.dtype)
    units, start = c.shape[-1], 0
    for step, rows in enumerate(sizes):  # the sentences that reach this step are the first ones
        if step % STEPS_AT_ONCE == 0:
            first, end = start, start + sum(sizes[step : step + STEPS_AT_ONCE])
            from_input = x[:, first:end] @ lstm.from_input
            from_input += lstm.bias
        gates = h[:, :rows] @ lstm.recurrent
        gates += from_input[:, start - first : start - first + rows]
        np.tanh(gates, out=gates)
        i, j, f, o = (gates[..., gate * units : (gate + 1) * units] for gate in range(4))
        # c = sigmoid(f) c + sigmoid(i) tanh(j)
        f += 1
        f *= c[:, :rows]
        i += 1
        i *= j
        f += i
        now = np.multiply(f, 0.5, out=c[:, :rows])
        clip(now, config.cell_clip)
        # h = W_p (sigmoid(o) tanh(c))
        o += 1
        o *= np.tanh(now)
        o *= 0.5
        r = o
        if lstm.projection is not None:
            r = o @ lstm.projection
            clip(r, config.proj_clip)
        h[:, :rows] = outputs[:, start : start + rows] = r
        start += rows
    return outputs


def clip(values: np.ndarray, bound: float | None) -> None:
    """Clips values to +-bound in place; bilm-tf does so with c and h in training and in use."""
    if bound is not None:
        np.minimum(values, bound, out=values)
        np.maximum(values, -bound, out=values)


def pack(readings: Sequence[Sequence[Sequence[int]]]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Puts sentences of different lengths into one row without padding: all first tokens, then all second ones, ...

    Args:
        readings: the numbers of each sentence's tokens, in the order in which each direction reads them.

    Returns:
        order: the sentences by descending length, so that those which reach a time step are the first ones.
        sizes: how many reach each time step.
        packed: the numbers `(2, sum(sizes))`.
    """
    lengths = np.array([len(forward) for forward, _ in readings])
    order = np.argsort(-lengths, kind="stable")
    is_active = np.arange(lengths.max())[:, None] < lengths[order]  # (time, sentences)
    numbers = np.zeros((2, *is_active.shape), np.int64)
    for rank, sentence in enumerate(order):
        numbers[:, : lengths[sentence], rank] = readings[sentence]
    return order, is_active.sum(1).tolist(), numbers[:, is_active]


def scalar_mix(layers: np.ndarray, scalar_parameters: np.ndarray, gamma: float) -> np.ndarray:
    """Returns ELMo_k = gamma * sum_j s_j h_kj, s being a softmax (equation 1), of `(num_layers + 1, ...)`."""
    s = np.exp(scalar_parameters - np.max(scalar_parameters))
    s /= s.sum()
    return gamma * np.tensordot(s.astype(layers.dtype), layers, 1)


def log_softmax(h: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Returns log p of every word `(n, vocab_size)`, given one direction's top layer `(n, projection_dim)` (3.1)."""
    logits = h @ kernel.T
    logits += bias
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
