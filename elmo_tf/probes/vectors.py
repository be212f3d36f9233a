"""All layers of the tokens of a text that a probe asks for, from a SavedModel."""

import os
from collections.abc import Sequence

import numpy as np

from elmo_tf.files.progress import ProgressLine
from elmo_tf.savedmodel import opening
from elmo_tf.savedmodel.embedding import Embedder, find_model


def embed(
    savedmodel: str | os.PathLike, sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[tuple[int, int]]]
) -> np.ndarray:
    """Returns the layers of spans of tokens, the mean of a span's tokens, in the order of the spans.

    Args:
        savedmodel: a version's folder, or a model's.
        sentences: tokens.
        spans: for each sentence the first token of each span and the one behind its last.

    Returns:
        float16 `(spans, num_layers, dim)`: exact to 0.05 %, enough to probe, in half the memory.

    Raises:
        InputError: if there is no such model, it lacks the contract's signatures or is damaged.
    """
    model = find_model(opening.check(savedmodel))
    firsts = np.cumsum([0, *(len(one) for one in spans)])
    found = np.zeros((firsts[-1], model.num_layers, model.dim), np.float16)
    # Sentences that nobody asks about stay empty, which the model skips.
    asked = [[token.encode() for token in tokens] if one else [] for tokens, one in zip(sentences, spans, strict=True)]
    line = ProgressLine(at_once=False)
    done, total = 0, sum(map(len, asked))
    for number, layers in Embedder(model).embed(asked):
        for place, (start, end) in enumerate(spans[number], firsts[number]):
            found[place] = layers[:, start:end].mean(1)
        done += len(asked[number])
        if line.due():
            line.show(f"embedded {done:,} of {total:,} tokens")
    line.clear()
    return found
