"""All layers of every token of a text, from a SavedModel."""

import os
import pathlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.progress import ProgressLine

_BATCH_TOKENS = 2048  # of a batch, padding included, unless one sentence is longer


def open_model(savedmodel: str | os.PathLike, argument: str = "--savedmodel") -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the signature `tokens` of an exported model.

    Raises:
        InputError: if there is no SavedModel, or it lacks the signature.
    """
    if not (pathlib.Path(savedmodel) / "saved_model.pb").is_file():
        raise InputError(f"{argument}: expected a folder with saved_model.pb, found none: {savedmodel}")
    try:
        signatures = tf.saved_model.load(str(savedmodel)).signatures
    except (OSError, tf.errors.OpError) as error:
        raise InputError(f"{argument}: expected an intact SavedModel, found {error}: {savedmodel}") from None
    if "tokens" not in signatures:
        expected = "a model of `elmo-tf export` with the signature tokens"
        raise InputError(f"{argument}: expected {expected}, found {sorted(signatures)}: {savedmodel}")
    return signatures["tokens"]


def embed(
    savedmodel: str | os.PathLike, sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[tuple[int, int]]]
) -> np.ndarray:
    """Returns the layers of spans of tokens, the mean of a span's tokens, in the order of the spans.

    Args:
        savedmodel: a version's folder.
        sentences: tokens.
        spans: for each sentence the first token of each span and the one behind its last.

    Returns:
        float16 `(spans, num_layers, dim)`: exact to 0.05 %, enough to probe, in half the memory.
    """
    model = open_model(savedmodel)
    firsts = np.cumsum([0, *(len(one) for one in spans)])
    found, line = None, ProgressLine(at_once=False)
    done, total = 0, sum(len(tokens) for tokens, one in zip(sentences, spans, strict=True) if one)
    for batch in _batches(sentences, [number for number, one in enumerate(spans) if one]):
        layers = _layers(model, [sentences[number] for number in batch])
        if found is None:
            found = np.zeros((firsts[-1], layers.shape[1], layers.shape[3]), np.float16)
        for number, values in zip(batch, layers, strict=True):
            for place, (start, end) in enumerate(spans[number], firsts[number]):
                found[place] = values[:, start:end].mean(1)
        done += sum(len(sentences[number]) for number in batch)
        if line.due():
            line.show(f"embedded {done:,} of {total:,} tokens")
    line.clear()
    return found


def _batches(sentences: Sequence[Sequence[str]], numbers: list[int]) -> Iterator[list[int]]:
    """Yields the numbers of sentences of like lengths."""
    batch: list[int] = []
    for number in sorted(numbers, key=lambda number: len(sentences[number])):
        if batch and len(sentences[number]) * (len(batch) + 1) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _layers(model: Callable, batch: list[Sequence[str]]) -> np.ndarray:
    """Returns float32 `(batch, num_layers, max_length, dim)`."""
    longest = max(len(tokens) for tokens in batch)
    tokens = [[*(token.encode() for token in one), *[b""] * (longest - len(one))] for one in batch]
    lengths = [len(one) for one in batch]
    return model(tokens=tf.constant(tokens), sequence_len=tf.constant(lengths, tf.int32))["layers"].numpy()
