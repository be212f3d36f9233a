"""All layers of chosen tokens of a text."""

import os
from collections.abc import Sequence

import numpy as np

from elmo_tf import sources
from elmo_tf.embedder import Embedder
from elmo_tf.files.progress import ProgressLine


def embed(
    source: str | os.PathLike, sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[tuple[int, int]]]
) -> np.ndarray:
    """Returns the layers of each sentence's spans, as means of their tokens: float16 `(spans, num_layers, dim)`.

    A span is its first token and the one after its last. float16 is exact to 0.05 %, enough for probes.
    """
    embedder = Embedder(sources.find(source))
    firsts = np.cumsum([0, *(len(one) for one in spans)])
    found = np.zeros((firsts[-1], embedder.source.num_layers, embedder.source.dim), np.float16)
    # Sentences without spans are left empty, which the model skips.
    asked = [[token.encode() for token in tokens] if one else [] for tokens, one in zip(sentences, spans, strict=True)]
    line = ProgressLine(at_once=False)
    done, total = 0, sum(map(len, asked))
    for number, layers in embedder.embed(asked):
        for place, (start, end) in enumerate(spans[number], firsts[number]):
            found[place] = layers[:, start:end].mean(1)
        done += len(asked[number])
        if line.due():
            line.show(f"embedded {done:,} of {total:,} tokens")
    line.clear()
    return found
