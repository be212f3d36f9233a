"""The engine of an `Embedder` that computes in TensorFlow."""

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf import extras, precision, sources
from elmo_tf.engines import Words
from elmo_tf.engines.token_vectors import TokenVectors
from elmo_tf.model import fast
from elmo_tf.model.scalar_mix import ScalarMix, build_mix
from elmo_tf.text import in_graph
from elmo_tf.text.vocabulary import Softmax

_STRINGS, _LENGTHS = tf.TensorSpec((None, None), tf.string), tf.TensorSpec((None,), tf.int32)


def limit_threads(num_threads: int) -> None:
    """Sets how many threads TensorFlow computes with, and that it takes a GPU's memory as needed.

    Once TensorFlow has computed, its settings stay as they are.
    """
    with contextlib.suppress(RuntimeError):  # raised once TensorFlow has computed
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.threading.set_intra_op_parallelism_threads(num_threads)


class TensorFlowEngine:
    """An `engines.Engine` that computes in TensorFlow, in the source's precision; scores in float32."""

    def __init__(self, source: sources.Source):
        extras.check_not_forked()
        if source.precision == "bfloat16":
            precision.check_bfloat16()
        self._source, self._bilm = source, source.network()
        scalar_parameters, gamma = source.mix()
        mix = build_mix(source.num_layers, scalar_parameters.tolist(), gamma)
        token_vectors, layers = map(_prepared_once, _graphs(self._bilm, mix))
        self._token_vectors, self._layers = TokenVectors(token_vectors, self._bilm.config), layers
        self._lock = threading.Lock()  # several threads may ask for the first score

    def vectors(self, sentences: Sequence[Words], mixed: bool) -> list[np.ndarray]:
        extras.check_not_forked()
        words = {b"<S>": 0, b"</S>": 1}
        lengths = np.array([len(tokens) for tokens in sentences], np.int32)
        numbers = np.zeros((len(sentences), lengths.max()), np.int32)
        for row, tokens in zip(numbers, sentences, strict=True):
            row[: len(tokens)] = [words.setdefault(token, len(words)) for token in tokens]
        outputs = self._layers(self._token_vectors(list(words)), numbers, lengths)
        vectors = outputs["elmo" if mixed else "layers"].numpy()
        return [layers[..., :length, :] for layers, length in zip(vectors, lengths, strict=True)]

    def without_memory(self) -> "TensorFlowEngine":
        copied = copy.copy(self)
        copied._token_vectors = self._token_vectors.empty()
        return copied

    def softmax(self) -> Softmax:
        return self._scoring[0]

    def token_log_probs(self, sentences: Sequence[Words], token_ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        ids = np.zeros((len(sentences), max(map(len, token_ids))), np.int32)
        for row, numbers in zip(ids, token_ids, strict=True):
            row[: len(numbers)] = numbers
        lengths = np.array([len(tokens) for tokens in sentences], np.int32)
        padded_log_probs = self._scoring[1](_padded(sentences), lengths, ids).numpy()
        return [
            np.stack([forward[1 : length + 2], backward[: length + 1]])
            for length, (forward, backward) in zip(lengths, padded_log_probs, strict=True)
        ]

    @functools.cached_property
    def _scoring_graph(self) -> tuple[Softmax, Any]:
        """The softmax, and the graph of log-probabilities."""
        weights, bilm = self._source.softmax(), self._bilm
        if self._source.precision != "float32":
            bilm = self._source.with_precision("float32").network()
        softmax, max_chars = fast.new_softmax(weights.kernel, weights.bias), bilm.config.char_cnn.max_chars_per_token

        @tf.function(input_signature=[_STRINGS, _LENGTHS, tf.TensorSpec((None, None), tf.int32)], autograph=False)
        def of_tokens(tokens, lengths, token_ids):
            char_ids = in_graph.encode_tokens(tokens, lengths, max_chars)
            return fast.token_log_probs(bilm, softmax, char_ids, token_ids)

        return weights, _prepared_once(of_tokens)

    @property
    def _scoring(self) -> tuple[Softmax, Any]:
        with self._lock:
            return self._scoring_graph


def _graphs(bilm: fast.BiLM, mix: ScalarMix) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns a graph of the vectors of distinct tokens, and one of the layers of sentences and their mix."""
    max_chars, dim = bilm.config.char_cnn.max_chars_per_token, bilm.config.lstm.projection_dim

    @tf.function(input_signature=[tf.TensorSpec((None, max_chars), tf.int32)], autograph=False)
    def token_vectors(char_ids):
        return bilm.token_vectors(char_ids, tf.range(tf.shape(char_ids)[0]))

    @tf.function(
        input_signature=[tf.TensorSpec((None, dim)), tf.TensorSpec((None, None), tf.int32), _LENGTHS], autograph=False
    )
    def layers(vectors, numbers, lengths):
        layers, _ = bilm.embed_vectors(tf.gather(vectors, numbers), lengths, vectors[:2])
        return {"layers": layers, "elmo": mix(layers)}

    return token_vectors, layers


def _prepared_once(graph: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a graph whose first call finishes before other threads' calls: TensorFlow would prepare it in each."""
    lock, is_prepared = threading.Lock(), threading.Event()

    def call(*arguments: Any) -> Any:
        with contextlib.nullcontext() if is_prepared.is_set() else lock:
            outputs = graph(*arguments)
            is_prepared.set()
            return outputs

    return call


def _padded(sentences: Sequence[Words]) -> np.ndarray:
    """Returns the tokens as an array of objects, padded with `b""`; `InputError` in a forked process."""
    extras.check_not_forked()
    padded = np.full((len(sentences), max(map(len, sentences))), b"", object)
    for row, tokens in zip(padded, sentences, strict=True):
        row[: len(tokens)] = tokens
    return padded
