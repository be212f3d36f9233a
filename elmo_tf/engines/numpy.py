"""The engine of an `Embedder` that computes in NumPy: the network of `reference.py`, many sentences at once.

Each distinct token goes through the character CNN once; sentences are packed without padding; both directions share
their products, and the gates one tanh. It has no gradients: `elmo_tf/model` trains.
"""

import copy
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.engines import Words, threads
from elmo_tf.engines.token_vectors import TokenVectors
from elmo_tf.text import char_ids

if TYPE_CHECKING:
    from elmo_tf.sources import Source
    from elmo_tf.text.vocabulary import Softmax

LOGITS_AT_ONCE = 2**22  # 16 MB: smaller pieces make slow products, larger ones leave the cache
TOKENS_AT_ONCE = 64  # distinct tokens that go through the convolutions together
STEPS_AT_ONCE = 64  # time steps whose gates are in memory together
SENTENCES_AT_ONCE = 16  # fewer in a product are slow

Weights = Mapping[str, np.ndarray]  # by name, such as `forward_0/kernel`; `ModelConfig.weight_shapes` lists them


class LSTM(NamedTuple):
    """One layer of a direction. The columns of all gates are side by side: i, j, f, o."""

    from_input: np.ndarray  # (input_dim, 4 * units)
    recurrent: np.ndarray  # (projection_dim, 4 * units)
    bias: np.ndarray  # (4 * units,)
    projection: np.ndarray | None  # (units, projection_dim); None: h is the output of the cell itself


class NumpyEngine:
    """An `Engine` that computes in NumPy."""

    def __init__(self, source: "Source"):
        self._bilm, self._mix = NumpyBiLM(source.config, source.weights()), source.mix()
        self._read_softmax = functools.cache(source.softmax)
        self._lock = threading.Lock()  # several threads may ask for the first score

    def vectors(self, sentences: Sequence[Words], mixed: bool) -> list[np.ndarray]:
        layers = self._bilm.layers(sentences)
        return [scalar_mix(sentence, *self._mix) for sentence in layers] if mixed else layers

    def without_memory(self) -> "NumpyEngine":
        copied = copy.copy(self)
        copied._bilm = copy.copy(self._bilm)
        copied._bilm.token_vectors = self._bilm.token_vectors.empty()
        return copied

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
        outputs = np.concatenate([h for reading in zip(*self._outputs(passages), strict=True) for h in reading])
        values = self._predicted(outputs, np.concatenate(targets, 1).ravel(), ranked)
        ends = np.cumsum([ids.shape[1] for ids in targets])[:-1]
        parts = np.split(values.reshape(2, 2, -1), ends, -1)
        return [np.stack([part[:, 0], part[:, 1, ::-1]], 1) for part in parts]

    def word_log_probs(self, tokens: Words, position: int) -> np.ndarray:
        """Returns the log-probability of every word at one position of a sentence, float32 `(2, vocab_size)`.

        Given the tokens before `position`, and given those after it.
        """
        ((forward, backward),) = self._outputs([[tokens]])
        kernel, bias, _ = self.softmax()
        with threads.products_on_one_thread():
            return log_softmax(np.stack([forward[position], backward[-2 - position]]), kernel, bias)

    def _outputs(self, passages: Sequence[Sequence[Words]]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns each direction's top layer of each passage, `(positions, projection_dim)`, as it reads."""
        directions = ((b"<S>", 1), (b"</S>", -1))
        readings = [
            [[token for tokens in passage for token in (mark, *tokens[::step])] for mark, step in directions]
            for passage in passages
        ]
        return [(forward[-1], backward[-1]) for forward, backward in self._bilm.read(readings)]

    def _predicted(self, outputs: np.ndarray, targets: np.ndarray, ranked: bool) -> np.ndarray:
        """Returns the log-probability of the target of each output, and its rank, `(2, targets)`."""
        kernel, bias, _ = self.softmax()

        def predicted(rows: np.ndarray) -> np.ndarray:
            values, log_probs = np.ones((2, len(rows)), np.float32), log_softmax(outputs[rows], kernel, bias)
            values[0] = log_probs[np.arange(len(rows)), targets[rows]]
            if ranked:
                values[1] += np.count_nonzero(log_probs > values[0, :, None], 1)
            return values

        groups = _groups(np.arange(len(targets)), max(1, LOGITS_AT_ONCE // len(kernel)))
        with threads.products_on_one_thread():
            return np.concatenate(threads.divided(predicted, groups), 1)


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
            [new_lstm(weights, f"{direction}_{number}", dtype) for number in range(config.lstm.num_layers)]
            for direction in ("forward", "backward")
        ]
        self.token_vectors = TokenVectors(lambda ids: char_cnn(self._char_cnn, ids, config.char_cnn), config, dtype)

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
        return [np.concatenate([forward[:, first:], backward[:, first:][:, ::-1]], -1) for forward, backward in read]

    def read(self, readings: Sequence[Sequence[Sequence[bytes]]]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns h_kj of readings, `(num_layers + 1, N, projection_dim)` of each direction, in its order of reading.

        A reading is the N tokens that the forward direction reads from the zero state, with `<S>`, and those that the
        backward direction reads.
        """
        # Half of the tokens of a text are repeats, and a token's vector does not depend on its sentence.
        words: dict[bytes, int] = {}
        numbers = [[[words.setdefault(t, len(words)) for t in tokens] for tokens in reading] for reading in readings]
        with threads.products_on_one_thread():
            vectors = self.token_vectors(list(words))
            # A thread for each direction, and further ones for other sentences of about the same lengths.
            order = sorted(range(len(readings)), key=lambda n: len(readings[n][0]))
            num_groups = max(1, min(threads.num_threads() // 2, len(readings) // SENTENCES_AT_ONCE))
            groups = [order[first::num_groups] for first in range(num_groups)]
            tasks = [(direction, group) for group in groups for direction in (0, 1)]
            # Two threads would spend more time on taking turns in Python's interpreter than one or two sentences take.
            divide = threads.divided if len(readings) > 2 else threads.in_turn
            computed = divide(lambda task: self._run(task[0], [numbers[n][task[0]] for n in task[1]], vectors), tasks)
        outputs = {
            (n, direction): layers
            for (direction, group), group_layers in zip(tasks, computed, strict=True)
            for n, layers in zip(group, group_layers, strict=True)
        }
        return [(outputs[n, 0], outputs[n, 1]) for n in range(len(readings))]

    def _run(self, direction: int, sentences: Sequence[Sequence[int]], vectors: np.ndarray) -> list[np.ndarray]:
        """Returns a direction's layers of each sentence, `(num_layers + 1, N, projection_dim)`, from zero states.

        Args:
            direction: 0 forward, 1 backward.
            sentences: the rows of `vectors` that it reads.
            vectors: token vectors.
        """
        order, sizes, packed = pack(sentences)
        layers = [vectors[packed]]
        for lstm in self._lstms[direction]:
            h = run_lstm(lstm, layers[-1], sizes, self.config.lstm)
            # Section 3.4: "a residual connection from the first to second layer"; the state has no part in it.
            layers.append(h + layers[-1] if len(layers) > 1 and self.config.lstm.use_skip_connections else h)
        starts, ranks = np.cumsum(sizes) - sizes, np.argsort(order)
        rows = [starts[: len(sentence)] + rank for sentence, rank in zip(sentences, ranks, strict=True)]
        return [np.stack([h[of_sentence] for h in layers]) for of_sentence in rows]


def char_cnn(weights: Weights, ids: np.ndarray, config: CharCNNConfig) -> np.ndarray:
    """Returns x_k of tokens `(n, projection_dim)`, given their character ids `(n, max_chars)`."""
    # Tokens of about the same length together: one long token would make all rows long.
    order = np.argsort(np.count_nonzero(ids != char_ids.PAD, 1), kind="stable")

    def vectors(group: np.ndarray) -> np.ndarray:
        y = convolutions(weights, ids[group], config)
        for n in range(config.num_highway):
            y = highway(y, *(weights[f"char_cnn/highway_{n}/{name}"] for name in HIGHWAY))
        if "char_cnn/projection/kernel" not in weights:  # the filters are as many as the projection is wide
            return y
        return y @ weights["char_cnn/projection/kernel"] + weights["char_cnn/projection/bias"]

    return np.concatenate(threads.divided(vectors, _groups(order, TOKENS_AT_ONCE)))[np.argsort(order)]


def _groups(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


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


@np.errstate(over="ignore")
def highway(y: np.ndarray, w_t: np.ndarray, b_t: np.ndarray, w_h: np.ndarray, b_h: np.ndarray) -> np.ndarray:
    """Returns z of `(n, num_filters)`; the gate t lets the transformed y through. bilm-tf calls it `carry`."""
    t = -(y @ w_t + b_t)
    sigmoid_of_negative(t)
    return t * np.maximum(y @ w_h + b_h, 0) + (1 - t) * y


def new_lstm(weights: Weights, name: str, dtype: type = np.float32) -> LSTM:
    """Returns the layer of this name, such as `forward_0`.

    A kernel is `(input_dim + projection_dim, 4 * units)`: the rows of the input, then those of the state.
    """
    kernel: np.ndarray = weights[f"{name}/kernel"].astype(dtype)
    bias: np.ndarray = weights[f"{name}/bias"].astype(dtype)
    projection: np.ndarray | None = weights.get(f"{name}/projection_kernel")
    units = len(bias) // 4
    bias[2 * units : 3 * units] += 1  # bilm-tf: the forget gate's bias is stored without this 1
    # sigmoid(a) = 1 / (1 + exp(-a)), and tanh(a) = 2 (sigmoid(2a) - 1/2): negated and doubled here, not at each step.
    scale: np.ndarray = np.repeat(np.array([-1, -2, -1, -1], dtype), units)
    kernel *= scale
    bias *= scale
    projection_dim = units
    if projection is not None:
        projection = 2 * projection.astype(dtype, copy=False)
        projection_dim = projection.shape[1]
    return LSTM(kernel[:-projection_dim], kernel[-projection_dim:], bias, projection)


@np.errstate(over="ignore")
def run_lstm(lstm: LSTM, x: np.ndarray, sizes: Sequence[int], config: LSTMConfig) -> np.ndarray:
    """Returns h of every position, `(positions, projection_dim)`, from zero states.

    The input's part of the gates does not depend on the state: a single large product computes it for many time steps.
    Only the rest waits for the step before.

    Args:
        lstm: the layer of a direction.
        x: its inputs in the order of `pack`, `(positions, input_dim)`.
        sizes: how many sentences reach each time step.
        config: its bounds.
    """
    units, projection_dim = lstm.bias.size // 4, lstm.recurrent.shape[0]
    outputs, start = np.empty((len(x), projection_dim), x.dtype), 0
    h, half_c = (np.zeros((sizes[0], size), x.dtype) for size in (projection_dim, units))
    half_bound = None if config.cell_clip is None else config.cell_clip / 2
    gates, tanh_c = (np.empty((sizes[0], size), x.dtype) for size in (4 * units, units))
    rows = 0
    for step, size in enumerate(sizes):  # the sentences that reach this step are the first ones
        if size != rows:
            rows, gates, tanh_c, half_c = size, gates[:size], tanh_c[:size], half_c[:size]
            i, j, f, o = (gates[:, gate * units : (gate + 1) * units] for gate in range(4))
        if step % STEPS_AT_ONCE == 0:
            first, end = start, start + sum(sizes[step : step + STEPS_AT_ONCE])
            from_input = x[first:end] @ lstm.from_input
            from_input += lstm.bias
        multiply(h[:rows], lstm.recurrent, gates)
        gates += from_input[start - first : start - first + rows]
        sigmoid_of_negative(gates)
        # c / 2 = sigmoid(f) c / 2 + sigmoid(i) tanh(j) / 2
        j -= 0.5
        i *= j
        f *= half_c
        np.add(f, i, out=half_c)
        clip(half_c, half_bound)
        # h = W_p (sigmoid(o) tanh(c))
        np.multiply(half_c, -4, out=tanh_c)
        sigmoid_of_negative(tanh_c)
        tanh_c -= 0.5
        o *= tanh_c  # half of it; the projection is doubled
        h = outputs[start : start + rows]
        if lstm.projection is None:
            np.multiply(o, 2, out=h)
        else:
            multiply(o, lstm.projection, h)
            clip(h, config.proj_clip)
        start += rows
    return outputs


def multiply(x: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """Writes the product to `out`. OpenBLAS takes less time for up to four vectors than for a matrix of two rows."""
    if len(x) <= 4:
        x, out = x[:, None], out[:, None]
    np.matmul(x, matrix, out=out)


def sigmoid_of_negative(a: np.ndarray) -> None:
    """Replaces a by sigmoid(-a), for which NumPy's exp and reciprocal take two thirds of the time of its tanh."""
    np.exp(a, out=a)  # infinite where the result is 0
    a += 1
    np.reciprocal(a, out=a)


def clip(values: np.ndarray, bound: float | None) -> None:
    """Clips values to +-bound in place; bilm-tf does so with c and h in training and in use."""
    if bound is not None:
        values.clip(-bound, bound, out=values)


def pack(sentences: Sequence[Sequence[int]]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Puts sentences of different lengths into one row without padding: all first tokens, then all second ones, ...

    Args:
        sentences: the numbers of each one's tokens, in the order in which they are read.

    Returns:
        order: the sentences by descending length, so that those which reach a time step are the first ones.
        sizes: how many reach each time step.
        packed: the numbers, `(sum(sizes),)`.
    """
    lengths = np.array([len(sentence) for sentence in sentences])
    order = np.argsort(-lengths, kind="stable")
    is_active = np.arange(lengths.max())[:, None] < lengths[order]  # (time, sentences)
    numbers = np.zeros(is_active.shape, np.int64)
    for rank, sentence in enumerate(order):
        numbers[: lengths[sentence], rank] = sentences[sentence]
    return order, is_active.sum(1).tolist(), numbers[is_active]


def scalar_mix(layers: np.ndarray, scalar_parameters: np.ndarray, gamma: float) -> np.ndarray:
    """Returns ELMo_k = gamma * sum_j s_j h_kj, s being a softmax (equation 1), of `(num_layers + 1, ...)`."""
    s = np.exp(scalar_parameters - np.max(scalar_parameters))
    s *= gamma / s.sum()
    return sum(weight * layer for weight, layer in zip(s.astype(layers.dtype), layers, strict=True))


def log_softmax(h: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Returns log p of every word `(n, vocab_size)`, given one direction's top layer `(n, projection_dim)` (3.1)."""
    logits = h @ kernel.T
    logits += bias
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
