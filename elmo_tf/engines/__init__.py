"""The engines of an `Embedder`: NumPy, which starts at once, and TensorFlow, which scores faster.

With `english` on two cores with AVX2, NumPy starts in 0.5 s and then embeds 5,600 and scores 930 tokens a second;
TensorFlow starts in 8 to 10 s, then embeds 4,400 to 5,700 and scores 1,300 to 1,550. So its start-up pays off only in
scoring, after about 25,000 tokens.

The engine is chosen when a model is loaded, and stays.
"""

import importlib.util
import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, cast, get_args

import numpy as np

from elmo_tf.errors import InputError

if TYPE_CHECKING:
    from elmo_tf.engines.numpy import NumpyEngine
    from elmo_tf.sources import Source
    from elmo_tf.text.vocabulary import Softmax

Words = Sequence[bytes]  # the tokens of a sentence
Name = Literal["numpy", "tensorflow"]

SCORED_TOKENS = 25_000  # from this many on, TensorFlow finishes scoring first, its start included

_log = logging.getLogger("elmo_tf")


class Engine(Protocol):
    """A model ready to compute. Several threads may use it at the same time."""

    def vectors(self, sentences: Sequence[Words], mixed: bool) -> list[np.ndarray]:
        """Returns all layers of each sentence, float32 `(num_layers, tokens, dim)`, or their mix `(tokens, dim)`."""

    def without_memory(self) -> "Engine":
        """Returns the same model, its weights shared, that remembers no token vectors of earlier calls."""

    def softmax(self) -> "Softmax":
        """Returns the softmax and its words; `InputError` if the source has none."""

    def token_log_probs(self, sentences: Sequence[Words], token_ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Returns the log-probabilities of each sentence, float32 `(2, tokens + 1)`.

        Forward: log p(token | its left context) of each token, then that of `</S>`. Backward: that of `<S>`, then
        log p(token | its right context) of each token.

        Args:
            sentences: the tokens of each.
            token_ids: their ids in the vocabulary, between those of `<S>` and `</S>`.
        """


class Engines:
    """The engine chosen for a model, and NumPy's for what only it computes; created on first use.

    A copy in another process reads the model again on first use: its weights would take longer to send than to read,
    and if reading failed while unpickling, `multiprocessing.Pool` would wait forever.

    Args:
        source: where the model comes from.
        requested: the user's choice; None: NumPy, unless the source, its precision or `num_threads` needs TensorFlow.
        num_threads: how many threads TensorFlow was asked to use; None: not asked.

    Attributes:
        name: of the engine that was chosen.

    Raises:
        InputError: if there is no such engine, or it cannot compute in the source's precision.
    """

    def __init__(self, source: "Source", requested: Name | None = None, num_threads: int | None = None):
        self._arguments = source, requested, num_threads
        self.name = _choose(source, requested, num_threads)
        self._advises = requested is None and self.name == "numpy"  # once
        self._made: dict[Name, Engine] = {}
        self._lock = threading.Lock()  # several threads may ask

    def __reduce__(self) -> tuple:
        return type(self), self._arguments

    def chosen(self, num_scored: int = 0) -> Engine:
        """Returns the engine that was chosen; logs once that TensorFlow is faster if a call scores many tokens."""
        if self._advises and num_scored > SCORED_TOKENS:
            self._advises = False
            if tensorflow_is_installed():
                _log.warning(
                    "NumPy scores %s tokens; a model loaded with engine='tensorflow' is faster from about %s tokens on",
                    *(f"{number:,}" for number in (num_scored, SCORED_TOKENS)),
                )
        return self._engine(self.name)

    def without_memory(self) -> "Engines":
        """Returns the same engines, as far as they are created, that remember nothing of earlier calls."""
        copied = type(self)(*self._arguments)
        with self._lock:
            copied._made = {name: engine.without_memory() for name, engine in self._made.items()}
        return copied

    def numpy(self) -> "NumpyEngine":
        """Returns NumPy's engine."""
        return cast("NumpyEngine", self._engine("numpy"))

    def _engine(self, name: Name) -> Engine:
        with self._lock:
            if name not in self._made:
                source, _, num_threads = self._arguments
                self._made[name] = make(source, name, num_threads)
            return self._made[name]


def _choose(source: "Source", requested: Name | None, num_threads: int | None) -> Name:
    if requested is None:
        uses_tensorflow = source.needs_tensorflow or num_threads is not None or source.precision != "float32"
        return "tensorflow" if uses_tensorflow else "numpy"
    if requested not in get_args(Name):
        raise InputError("engine", f"one of {', '.join(get_args(Name))}", repr(requested))
    if requested == "numpy" and source.precision != "float32":
        raise InputError("engine", f"{source.precision} products need tensorflow")
    return requested


def fastest(source: "Source", num_scored: float = 0) -> Name:
    """Returns the engine that finishes first, its start included, with scoring about this many tokens, or embedding."""
    if source.needs_tensorflow or (num_scored > SCORED_TOKENS and tensorflow_is_installed()):
        return "tensorflow"
    return "numpy"


def make(source: "Source", name: Name, num_threads: int | None = None) -> Engine:
    """Returns the engine of this name for a source; TensorFlow uses `num_threads`, or all.

    Raises:
        InputError: if a file is damaged, or this CPU does not have the precision.
        ModuleNotFoundError: if it needs TensorFlow, which is not installed.
    """
    if name == "tensorflow" or source.needs_tensorflow:
        from elmo_tf import extras  # noqa: PLC0415 - NumPy's engine does not need it

        extras.check_installed("tensorflow")
        extras.check_keras_backend()
    if name == "numpy":
        from elmo_tf.engines.numpy import NumpyEngine  # noqa: PLC0415 - it imports this module

        return NumpyEngine(source)
    from elmo_tf.engines import tensorflow  # noqa: PLC0415 - it imports TensorFlow

    if num_threads is not None:
        tensorflow.limit_threads(num_threads)
    return tensorflow.TensorFlowEngine(source)


def tensorflow_is_installed() -> bool:
    """Whether TensorFlow can be imported."""
    return importlib.util.find_spec("tensorflow") is not None
