"""A frozen biLM's layers, computed once for sentences that training sees many times."""

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.files import progress
from elmo_tf.text.batches import BATCH_TOKENS, batches
from elmo_tf.text.tokenizers import to_bytes

_IN_MEMORY = 2 * 2**30  # bytes; more are kept in a file

_log = logging.getLogger("elmo_tf")


class CachedLayers:
    """Layers of sentences in float16: exact to 0.05 %, in half the memory.

    Args:
        sentences: the tokens of each; repeated ones are computed once.
        compute: from tokens, string `(batch, time)` padded with `""`, to layers, float32 `(batch, num_layers, time,
            dim)`.
        num_layers: the token layer included.
        dim: width of a layer's vector.
        folder: for a temporary file, if the layers are more than 2 GB; None: the system's.
    """

    def __init__(
        self,
        sentences: Iterable[Sequence[str | bytes]],
        compute: Callable[[tf.Tensor], tf.Tensor],
        num_layers: int,
        dim: int,
        folder: str | os.PathLike | None = None,
    ):
        distinct = list(dict.fromkeys(map(_tokens, [sentences] if isinstance(sentences, str | bytes) else sentences)))
        lengths = [len(tokens) for tokens in distinct]
        ends = np.cumsum([0, *lengths])
        self._spans = {tokens: (ends[number], ends[number + 1]) for number, tokens in enumerate(distinct)}
        self._spans[()] = (0, 0)
        self._layers = _allocate((int(ends[-1]), num_layers, dim), folder)
        report = progress.reporter("layers of {:,} of {:,} tokens")
        self._compute = tf.function(compute, input_signature=[tf.TensorSpec((None, None), tf.string)], autograph=False)
        done = 0
        for batch in batches(lengths, BATCH_TOKENS):
            tokens = tf.ragged.constant([distinct[number] for number in batch], dtype=tf.string).to_tensor("")
            computed = self._compute(tokens)
            for number, layers in zip(batch, computed.numpy().transpose(0, 2, 1, 3), strict=True):
                self._layers[ends[number] : ends[number + 1]] = layers[: lengths[number]]
                done += lengths[number]
            report(done, ends[-1])
        storage = "in a file" if isinstance(self._layers, np.memmap) else "in memory"
        size = self._layers.nbytes / 1e9
        _log.info("ELMo's layers of %s distinct sentences: %.2f GB %s", f"{len(distinct):,}", size, storage)

    def __call__(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the layers of tokens, string `(batch, time)`: float32 `(batch, num_layers, time, dim)`, 0 at padding.

        A batch with an unknown sentence is computed.
        """
        # Python only looks up: if it computed, and TensorFlow had one thread, it would wait for that thread forever.
        layers = tf.cond(
            tf.numpy_function(self._are_known, [tokens], tf.bool, stateful=False),
            lambda: tf.numpy_function(self._look_up, [tokens], tf.float16, stateful=False),
            lambda: tf.cast(tf.stop_gradient(self._compute(tokens)), tf.float16),
        )
        _, num_layers, dim = self._layers.shape
        return tf.cast(tf.ensure_shape(layers, (None, num_layers, None, dim)), tf.float32)

    def _are_known(self, tokens: np.ndarray) -> bool:
        return all(_without_padding(row) in self._spans for row in tokens.tolist())

    def _look_up(self, tokens: np.ndarray) -> np.ndarray:
        rows = [_without_padding(row) for row in tokens.tolist()]
        _, num_layers, dim = self._layers.shape
        layers = np.zeros((len(rows), num_layers, tokens.shape[1], dim), np.float16)
        for number, row in enumerate(rows):
            start, end = self._spans[row]
            layers[number, :, : len(row)] = self._layers[start:end].transpose(1, 0, 2)
        return layers


def _tokens(sentence: Sequence[str | bytes]) -> tuple[bytes, ...]:
    if isinstance(sentence, str | bytes):
        raise InputError("sentences", "lists of tokens; split a sentence first", repr(sentence))
    return tuple(to_bytes(token, "sentences") for token in sentence)


def _without_padding(row: list[bytes]) -> tuple[bytes, ...]:
    while row and not row[-1]:
        row.pop()
    return tuple(row)


def _allocate(shape: tuple[int, ...], folder: str | os.PathLike | None) -> np.ndarray:
    size = 2 * int(np.prod(shape))
    if size <= _IN_MEMORY:
        return np.zeros(shape, np.float16)
    folder = os.fspath(folder or tempfile.gettempdir())
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            # Otherwise, writing to the mapped file when the disk is full would kill the process.
            if hasattr(os, "posix_fallocate"):  # not on macOS
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            problem = f"no room for {size:,} bytes, the sentences' layers ({error.strerror})"
            raise InputError(str(folder), problem) from None
        return np.memmap(file, np.float16, "w+", shape=shape)
