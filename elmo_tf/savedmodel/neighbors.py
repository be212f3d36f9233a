"""The nearest uses of words in context, which show what a model knows of a word with several senses."""

import bisect
import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from elmo_tf.errors import InputError

Words = list[bytes]  # the tokens of a sentence
Embedded = tuple[int, Words, np.ndarray]  # a line's number, its tokens and their vectors
# Tokens at the start of the text that the mean is taken over: enough for 1 % of a component's standard deviation.
MEAN_TOKENS = 16_384


class Query(NamedTuple):
    """A word at one place of one sentence."""

    sentence: Words
    position: int  # of the word in the sentence, from 0

    @property
    def word(self) -> bytes:
        return self.sentence[self.position]


class Use(NamedTuple):
    """A word at one place of one sentence of the text."""

    similarity: float  # cosine of its vector and the query's, both minus the mean of the text's vectors, -1 to 1
    line: int  # number of the line in the text, from 0
    sentence: list[str]
    position: int  # of the word in the sentence, from 0


def find_query(word: str, sentence: str, position: int | None = None) -> Query:
    """Returns the word in the sentence.

    Args:
        word: compared with case, byte by byte.
        sentence: tokens between white space, `word` among them.
        position: of the word, counted from 0; None: the only one, or the first.

    Raises:
        InputError: if the word is not there.
    """
    wanted, words = word.encode(errors="surrogateescape"), sentence.encode(errors="surrogateescape").split()
    if wanted not in words:
        raise InputError("sentence", f"the word {word!r} in it", repr(sentence))
    places = [place for place, found in enumerate(words) if found == wanted]
    if position is not None and position not in places:
        raise InputError("position", f"one of {places}, the positions of {word!r}", position)
    return Query(words, places[0] if position is None else position)


def nearest_uses(
    query: Query,
    target: np.ndarray,
    embedded: Iterable[Embedded],
    count: int = 10,
    same_word: bool = False,
) -> list[Use]:
    """Returns the uses most similar to the query's, best first, at most one in each distinct sentence.

    The mean vector of the first `MEAN_TOKENS` tokens is subtracted from all vectors: what all vectors of a layer share
    says nothing about a use, and makes all cosines nearly equal. Memory does not grow with the text.

    Args:
        query: its own sentence is skipped wherever it occurs.
        target: float32 `(dim,)`, the query's vector.
        embedded: the text: each line's number, its tokens and their vectors `(tokens, dim)`.
        count: the largest number of uses to return.
        same_word: whether to consider only uses of the query's word.
    """
    best: list[Use] = []
    known: set[tuple[bytes, ...]] = {tuple(query.sentence)}
    embedded = iter(embedded)
    first, num_tokens = [], 0
    for line in embedded:
        first.append(line)
        num_tokens += len(line[1])
        if num_tokens >= MEAN_TOKENS:
            break
    if not num_tokens:
        return []
    mean = np.concatenate([vectors for _, _, vectors in first]).mean(axis=0, dtype=np.float64).astype(np.float32)
    target = target - mean
    for line, words, vectors in itertools.chain(first, embedded):
        if not words or tuple(words) in known:
            continue
        similarities = _cosines(vectors - mean, target)
        if same_word:
            similarities[[word != query.word for word in words]] = -np.inf
        position = int(similarities.argmax())
        similarity = float(similarities[position])
        if similarity == -np.inf or (len(best) == count and similarity <= best[-1].similarity):
            continue
        use = Use(similarity, line, [word.decode(errors="replace") for word in words], position)
        bisect.insort(best, use, key=lambda one: (-one.similarity, one.line))
        known.add(tuple(words))
        for gone in best[count:]:
            known.discard(tuple(word.encode() for word in gone.sentence))
        del best[count:]
    return best


def _cosines(vectors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns the cosine of each row, float32 `(tokens,)`; 0 for a vector without length."""
    lengths = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(target)
    # Rounding may give a little more than 1.
    return np.clip(vectors @ target / np.where(lengths == 0, 1, lengths), -1, 1)
