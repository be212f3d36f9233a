"""The nearest uses of words in context, which show what a model knows of a word with several senses."""

import bisect
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from elmo_tf.errors import InputError

# The tokens of a sentence.
Words = list[bytes]


class Query(NamedTuple):
    """A word at one place of one sentence."""

    sentence: Words
    # Number of the word in the sentence, from 0.
    position: int

    @property
    def word(self) -> bytes:
        """The word."""
        return self.sentence[self.position]


class Use(NamedTuple):
    """A word at one place of one sentence of the text."""

    # Cosine of its vector and the query's, -1 to 1.
    similarity: float
    # Number of the line in the text, from 0.
    line: int
    sentence: list[str]
    # Number of the word in the sentence, from 0.
    position: int


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
    embedded: Iterable[tuple[int, Words, np.ndarray]],
    count: int = 10,
    same_word: bool = False,
) -> list[Use]:
    """Returns the uses of words most similar to the query's, best first, at most one in each distinct sentence.

    Memory does not grow with the text.

    Args:
        query: its own sentence is skipped wherever it occurs.
        target: float32 `(dim,)`, the vector of the query.
        embedded: the text: each line's number, its tokens and their vectors `(tokens, dim)`.
        count: the largest number of uses to return.
        same_word: whether to consider only uses of the query's word.
    """
    best: list[Use] = []
    known: set[tuple[bytes, ...]] = {tuple(query.sentence)}
    for line, words, vectors in embedded:
        if not words or tuple(words) in known:
            continue
        similarities = _cosines(vectors, target)
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
    vectors = vectors.astype(np.float32, copy=False)
    lengths = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(target)
    # Rounding may give a little more than 1.
    return np.clip(vectors @ target / np.where(lengths == 0, 1, lengths), -1, 1)
