"""Layer vectors of selected token spans."""

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from elmo_tf import sources
from elmo_tf.embedder import Embedder
from elmo_tf.files import progress


class Model(Protocol):
    """Any model with a vector per token and layer, such as an `Embedder`."""

    def embed(self, sentences: Sequence[Sequence[bytes]]) -> Iterable[tuple[int, np.ndarray]]:
        """Yields the index and the layers, float32 `(layers, tokens, dim)`, of each nonempty sentence."""


# As for `elmo_tf.load`, or a model.
Source = str | os.PathLike | Model


def embed(source: Source, sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """Returns the layers of each sentence's spans, as means of their tokens: float16 `(spans, num_layers, dim)`.

    A span is its first token and the token after its last. float16 is exact to 0.05 %, enough for probes.
    """
    firsts = np.cumsum([0, *map(len, spans)])
    means = np.zeros((0, 0, 0), np.float16)
    # The model skips empty sentences, so those without spans cost nothing.
    needed = [sentence if chosen else [] for sentence, chosen in zip(sentences, spans, strict=True)]
    encoded = [[token.encode() for token in sentence] for sentence in needed]
    done, total = 0, sum(map(len, encoded))
    model = Embedder(sources.find(source)) if isinstance(source, str | os.PathLike) else source
    report = progress.reporter("embedded {:,} of {:,} tokens")
    for number, layers in model.embed(encoded):
        if not len(means):
            means = np.zeros((firsts[-1], *layers.shape[::2]), np.float16)
        for row, (start, end) in enumerate(spans[number], firsts[number]):
            means[row] = layers[:, start:end].mean(1)
        done += len(encoded[number])
        report(done, total)
    return means


def unit(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors scaled to length 1, `(..., dim)`; a zero vector stays 0."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
