"""The softmax's words and their ids, in the order that log-uniform sampling needs."""

import hashlib
import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files import intact

SPECIAL_TOKENS = (b"<S>", b"</S>", b"<UNK>")
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)


class Vocabulary:
    """Words and their ids: `<S>` 0, `</S>` 1, `<UNK>` 2, then by descending count, ties by the word's bytes.

    Args:
        tokens: UTF-8 bytes of every word, the three special ones first.
        source: name of the vocabulary in errors, usually its file.

    Raises:
        InputError: if the first three tokens are not the special ones, or a token is empty, repeated, not UTF-8 or
            contains white space.
    """

    def __init__(self, tokens: list[bytes], source: str = "vocabulary"):
        if tuple(tokens[:3]) != SPECIAL_TOKENS:
            first_lines = [token.decode(errors="replace") for token in tokens[:3]]
            raise InputError(source, "<S>, </S>, <UNK> as its first three lines", first_lines)
        self.tokens = tokens
        self._ids: dict[bytes, int] = {}
        for number, token in enumerate(tokens):
            _check_token(token, f"{source}, line {number + 1}")
            if self._ids.setdefault(token, number) != number:
                first = self._ids[token] + 1
                raise InputError(f"{source}, line {number + 1}", f"the word {token!r} is already in line {first}")

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, tokens: Iterable[bytes]) -> list[int]:
        """Returns the id of each token; tokens that are not in the vocabulary get that of `<UNK>`."""
        find = self._ids.get
        return [find(token, UNKNOWN_ID) for token in tokens]

    def to_bytes(self) -> bytes:
        """Returns the contents of the vocabulary's file: UTF-8, one token per line."""
        return b"\n".join(self.tokens) + b"\n"

    def sha256(self) -> str:
        """Returns the checksum of the vocabulary's file; equal checksums mean equal words and ids."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


class Softmax(NamedTuple):
    """The weights of a softmax, and its words."""

    kernel: np.ndarray  # float32 (vocab_size, projection_dim)
    bias: np.ndarray  # float32 (vocab_size,)
    vocabulary: Vocabulary


def from_bytes(content: bytes, source: str) -> Vocabulary:
    """Returns the vocabulary that a file contains; errors name it `source`.

    Raises:
        InputError: as `Vocabulary`, or if the file is empty.
    """
    return Vocabulary(_lines(content, source), source)


def read(path: str | os.PathLike) -> Vocabulary:
    """Returns the vocabulary in a file; raises `InputError` as `from_bytes` and `intact.read`."""
    return from_bytes(intact.read(path), str(path))


def from_published(content: bytes, source: str) -> tuple[Vocabulary, list[int]]:
    """Returns the vocabulary of a file made for bilm-tf, and the lines of its special tokens, counted from 0.

    bilm-tf finds the special tokens by name, so they may be in any order at the beginning. Softmax rows follow the
    file: row `lines[i]` belongs to id `i`, for the first three.
    """
    tokens = _lines(content, source)
    lines = list(range(len(SPECIAL_TOKENS)))
    if sorted(tokens[:3]) == sorted(SPECIAL_TOKENS):
        lines = [tokens.index(token) for token in SPECIAL_TOKENS]
        tokens[:3] = SPECIAL_TOKENS
    return Vocabulary(tokens, source), lines


def from_counts(counts: Iterable[tuple[bytes, int]], max_size: int | None = None) -> Vocabulary:
    """Returns the vocabulary of counted words, with at most `max_size` entries, the special tokens included."""
    by_count = sorted((-count, token) for token, count in counts if token not in SPECIAL_TOKENS)
    tokens = [*SPECIAL_TOKENS, *(token for _, token in by_count)]
    return Vocabulary(tokens[:max_size])


def check_order(vocabulary: Vocabulary, counts: list[int], source: str) -> None:
    """Raises `InputError` if the words are clearly not in descending order of their counts in a corpus.

    Another corpus's order is fine; alphabetical order is not. The first half of the words that occur must cover at
    least three quarters of what the most frequent half covers. `counts` are by id.
    """
    occurring = [count for count in counts[len(SPECIAL_TOKENS) :] if count]
    half = len(occurring) // 2
    if half < 10:
        return
    covered, possible = sum(occurring[:half]), sum(sorted(occurring, reverse=True)[:half])
    if covered < 0.75 * possible:
        share, best = covered / sum(occurring), possible / sum(occurring)
        shares = f"the first half covers {share:.0%} of the corpus, the most frequent half {best:.0%}"
        raise InputError(source, f"its words are not in the order of their counts, which sampling needs: {shares}")


def _lines(content: bytes, source: str) -> list[bytes]:
    if not content.strip():
        raise InputError(source, "the file is empty; a vocabulary has one word per line")
    return content.replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")


def _check_token(token: bytes, location: str) -> None:
    if not token or token.split() != [token]:
        raise InputError(location, "a word without white space", repr(token))
    try:
        token.decode()
    except UnicodeDecodeError:
        raise InputError(location, f"not UTF-8: {token!r}") from None
