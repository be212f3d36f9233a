"""The engines of an `Embedder`: NumPy, which starts at once, and TensorFlow, which is faster in batches.

With `english`, in CPU time of one thread, NumPy starts in 0.4 s and then embeds 4,500 and scores 1,050 tokens a second;
TensorFlow starts in 8 s, then embeds 6,400 and scores 1,800. So its start is worth 120,000 tokens to embed and 20,000
to score; `TENSORFLOW_TOKENS` in a call is between. A single sentence is quicker in NumPy.
"""

import functools
import importlib.util
import threading
from collections.abc import Sequence
from typing import Literal, Protocol, get_args

import numpy as np

from elmo_tf import extras
from elmo_tf.errors import InputError
from elmo_tf.reference import NumpyBiLM, log_softmax, scalar_mix
from elmo_tf.sources import Source
from elmo_tf.text.vocabulary import Softmax

Words = Sequence[bytes]  # the tokens of a sentence
Name = Literal["numpy", "tensorflow"]

TENSORFLOW_TOKENS = 50_000
_LOGITS_AT_ONCE = 2**22  # 16 MB: smaller pieces make slow products, larger ones leave the cache


class Engine(Protocol):
    """A model ready to compute. Several threads may use it at the same time."""

    def vectors(self, sentences: Sequence[Words], mixed: bool) -> list[np.ndarray]:
        """Returns all layers of each sentence, float32 `(num_layers, tokens, dim)`, or their mix `(tokens, dim)`."""

    def softmax(self) -> Softmax:
        """Returns the softmax and its words; `InputError` if the source has none."""

    def token_log_probs(self, sentences: Sequence[Words], token_ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Returns the log-probabilities of each sentence, float32 `(2, tokens + 1)`.

        Forward: log p(token | its left context) of each token, then that of `</S>`. Backward: that of `<S>`, then
        log p(token | its right context) of each token.

        Args:
            sentences: the tokens of each.
            token_ids: their ids in the vocabulary, between those of `<S>` and `</S>`.
        """


class NumpyEngine:
    """An `Engine` that computes in NumPy, in float32."""

    def __init__(self, source: Source):
        self._bilm, self._mix = NumpyBiLM(source.config, source.weights()), source.mix()
        self._read_softmax = functools.cache(source.softmax)
        self._lock = threading.Lock()  # several threads may ask for the first score

    def vectors(self, sentences: Sequence[Words], mixed: bool) -> list[np.ndarray]:
        layers = self._bilm.layers(sentences)
        return [scalar_mix(sentence, *self._mix) for sentence in layers] if mixed else layers

    def softmax(self) -> Softmax:
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
        values, num_rows = np.ones((2, len(targets)), np.float32), max(1, _LOGITS_AT_ONCE // len(kernel))
        for start in range(0, len(targets), num_rows):
            rows = slice(start, start + num_rows)
            log_probs = log_softmax(outputs[rows], kernel, bias)
            values[0, rows] = log_probs[np.arange(len(log_probs)), targets[rows]]
            if ranked:
                values[1, rows] += np.count_nonzero(log_probs > values[0, rows, None], 1)
        return values


def initial_engine(source: Source, requested: Name | None, num_threads: int | None) -> Name:
    """Returns the engine that a model starts with.

    Args:
        source: of the model.
        requested: the user's choice; None: choose one.
        num_threads: how many threads TensorFlow was asked to use; None: not asked.

    Raises:
        InputError: if there is no such engine, or it cannot compute in the source's precision.
    """
    if requested is None:
        uses_tensorflow = source.needs_tensorflow or num_threads is not None or source.precision != "float32"
        return "tensorflow" if uses_tensorflow else "numpy"
    if requested not in get_args(Name):
        raise InputError("engine", f"one of {', '.join(get_args(Name))}", repr(requested))
    if requested == "numpy" and source.precision != "float32":
        raise InputError("engine", f"{source.precision} products need tensorflow")
    return requested


def make(source: Source, name: Name, num_threads: int | None = None) -> Engine:
    """Returns the engine of this name for a source; `num_threads` is as for `Embedder`.

    Raises:
        InputError: if a file is damaged, or this CPU does not have the precision.
        ModuleNotFoundError: if it needs TensorFlow, which is not installed.
    """
    if name == "tensorflow" or source.needs_tensorflow:
        extras.check_installed("tensorflow")
        extras.check_keras_backend()
    if name == "numpy":
        return NumpyEngine(source)
    from elmo_tf import tensorflow_engine  # noqa: PLC0415 - it imports TensorFlow

    if num_threads is not None:
        tensorflow_engine.limit_threads(num_threads)
    return tensorflow_engine.TensorFlowEngine(source)


def tensorflow_is_installed() -> bool:
    """Whether TensorFlow can be imported; without it, NumPy computes everything."""
    return importlib.util.find_spec("tensorflow") is not None
