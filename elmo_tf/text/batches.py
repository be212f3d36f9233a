"""How sentences are batched: equal ones once, those of similar length together, very long ones in pieces."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

BATCH_TOKENS = 2048  # positions of a batch, padding included
# A longer sentence is computed in pieces of this many tokens, because memory grows with its length.
PIECE_TOKENS = 40_000


def batches(lengths: Sequence[int], batch_tokens: int, batch_size: int | None = None) -> Iterator[list[int]]:
    """Yields the indices of sentences that share a batch, by ascending length; leaves out those without tokens."""
    batch: list[int] = []
    for index in np.argsort(lengths, kind="stable").tolist():
        # A sentence longer than a piece is a batch by itself.
        is_full = lengths[index] * (len(batch) + 1) > batch_tokens or len(batch) == batch_size
        if batch and (is_full or lengths[index] > PIECE_TOKENS):
            yield batch
            batch = []
        if lengths[index]:
            batch.append(index)
    if batch:
        yield batch


def equal_items(items: Iterable[Hashable]) -> list[list[int]]:
    """Returns the indices of equal items together, in the order in which these first occur.

    Computing the same item twice may give different bits: a product rounds a row by its position in a block.
    """
    indices: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        indices.setdefault(item, []).append(index)
    return list(indices.values())


def pieces(sentence: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Returns the pieces of a sentence: itself, unless it is longer than `PIECE_TOKENS`."""
    return [sentence[start : start + PIECE_TOKENS] for start in range(0, len(sentence), PIECE_TOKENS)]
