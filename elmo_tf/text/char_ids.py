"""Character ids in NumPy, by the same convention for training, embedding and files.

A real token is `[BEGIN_WORD, bytes + 1, END_WORD, PAD, PAD, ...]`; a padding token is all `PADDING`. Every id is
bilm-tf's (`bilm/data.py`, `UnicodeCharsVocabulary`) plus 1, so that 0 is free for padding.
"""

import functools

import numpy as np

PADDING = 0  # every id of a padding token; masked
BEGIN_SENTENCE = 257
END_SENTENCE = 258
BEGIN_WORD = 259
END_WORD = 260
PAD = 261  # after a real token's END_WORD; an ordinary character with a trained vector
NUM_CHARS = 262  # rows of the character table, the constant zero row of PADDING included

MAX_CHARS_PER_TOKEN = 50  # BEGIN_WORD, up to 48 bytes, END_WORD
NUM_MARKS = 2  # BEGIN_WORD and END_WORD

SENTENCE_MARKS = {b"<S>": BEGIN_SENTENCE, b"</S>": END_SENTENCE}


def encode_tokens(tokens: list[bytes], max_chars_per_token: int = MAX_CHARS_PER_TOKEN) -> np.ndarray:
    """Returns the character ids of `tokens`, int32 `(len(tokens), max_chars_per_token)`.

    Tokens are cut after `max_chars_per_token - 2` bytes, even inside a character. `<S>` and `</S>` become the sentence
    marks.
    """
    lengths = np.array([len(token) for token in tokens], np.int64)
    words = Words(np.frombuffer(b"".join(tokens), np.uint8), lengths, max_chars_per_token)
    return words.char_ids(np.arange(len(lengths))).astype(np.int32)


class Words:
    """Tokens stored end to end in bytes; returns the character ids of many at a time.

    Args:
        values: uint8 `(sum(lengths),)`, the tokens' bytes.
        lengths: integers `(num_tokens,)`, bytes per token.
        max_chars_per_token: ids per token; longer tokens are cut.
    """

    def __init__(self, values: np.ndarray, lengths: np.ndarray, max_chars_per_token: int = MAX_CHARS_PER_TOKEN):
        lengths = lengths.astype(np.int64)
        self._starts = np.cumsum(lengths) - lengths
        # `_following[n]` is a view of the ids from item n of `padded` on; nothing is copied. With 6 ids per token, for
        # "to" of the words "go", "to", "it", whose first byte has the index 2 (letters stand for their bytes + 1):
        #   padded           1 g o t o i t 1 1 1 1 1 1
        #   _following[2]        o t o i t 1
        #   & keep               0 t o 0 0 0
        #   | frame              B t o E P P    with B for BEGIN_WORD, E for END_WORD, P for PAD
        padded = np.zeros(len(values) + 1 + max_chars_per_token, np.uint16)
        padded[1 : len(values) + 1] = values
        padded += 1
        self._following = np.ndarray(len(values) + 1, _row_type(max_chars_per_token), padded, strides=padded.strides)
        self._max_length = max_chars_per_token - NUM_MARKS
        self._frames = _frames(max_chars_per_token)
        self._frame_of = np.minimum(lengths, self._max_length)
        for token, mark in SENTENCE_MARKS.items():
            spelled = np.frombuffer(token, np.uint8)
            candidates = np.flatnonzero(lengths == len(token))
            matches = (values[self._starts[candidates][:, None] + np.arange(len(token))] == spelled).all(axis=1)
            self.set_boundary(candidates[matches], mark)

    def set_boundary(self, numbers: np.ndarray, mark: int) -> None:
        """Makes words a sentence boundary, whatever their bytes; `mark` is BEGIN_SENTENCE or END_SENTENCE."""
        self._frame_of[numbers] = self._max_length + 1 + (BEGIN_SENTENCE, END_SENTENCE).index(mark)

    def char_ids(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the character ids of words by their numbers, uint16 `(len(numbers), max_chars_per_token)`."""
        keep, frame = self._frames
        frame_of = self._frame_of[numbers]
        rows = self._following[self._starts[numbers]]
        ids = rows.view(np.uint16).reshape(len(rows), self._max_length + NUM_MARKS)
        ids &= keep.take(frame_of, 0)
        ids |= frame.take(frame_of, 0)
        return ids


def put_rows(target: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> None:
    """Like `target[indices] = rows` for contiguous two-dimensional uint16 arrays, in a third of the time."""
    kind = _row_type(target.shape[1])
    target.view(kind)[indices] = rows.view(kind)


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct rows of a contiguous uint16 `(n, width)` array, in the order in which they first occur.

    Also returns the index of each row among them, int32 `(n,)`.
    """
    index_of: dict[bytes, int] = {}
    indices = [index_of.setdefault(row, len(index_of)) for row in rows.view(_row_type(rows.shape[1])).ravel().tolist()]
    return np.frombuffer(b"".join(index_of), np.uint16).reshape(-1, rows.shape[1]), np.array(indices, np.int32)


def _row_type(max_chars_per_token: int) -> np.dtype:
    """Returns a dtype for a token's uint16 ids as a single opaque item, which NumPy copies much faster than a row."""
    return np.dtype((np.void, max_chars_per_token * np.dtype(np.uint16).itemsize))


@functools.cache
def _frames(max_chars_per_token: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns a mask of the bytes, and the marks around them, for words of every length and both sentence boundaries.

    Both are uint16 `(max_chars_per_token + 1, max_chars_per_token)`: the mask has all bits set where there is a byte,
    the ids are 0 there.
    """
    lengths, columns = np.arange(max_chars_per_token - NUM_MARKS + 1)[:, None], np.arange(max_chars_per_token)
    marks = np.where(columns == 0, BEGIN_WORD, np.where(columns == lengths + 1, END_WORD, PAD))
    inside = (columns > 0) & (columns <= lengths)
    boundaries = [boundary(mark, max_chars_per_token) for mark in (BEGIN_SENTENCE, END_SENTENCE)]
    frame = np.concatenate([np.where(inside, 0, marks), boundaries])
    keep = np.concatenate([np.where(inside, 0xFFFF, 0), np.zeros_like(boundaries)])
    return keep.astype(np.uint16), frame.astype(np.uint16)


def boundary(mark: int, max_chars_per_token: int = MAX_CHARS_PER_TOKEN) -> np.ndarray:
    """Returns the ids of a sentence boundary, BEGIN_SENTENCE or END_SENTENCE, int32 `(max_chars_per_token,)`."""
    ids = np.full(max_chars_per_token, PAD, np.int32)
    ids[:3] = BEGIN_WORD, mark, END_WORD
    return ids
