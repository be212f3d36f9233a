"""The one convention of character ids, in NumPy: used to train, to embed and in files.

A real token is `[BEGIN_WORD, bytes + 1, END_WORD, PAD, PAD, ...]`; a padding token is all `PADDING`. Every id is one
more than bilm-tf's (`bilm/data.py`, `UnicodeCharsVocabulary`), so that 0 is free for padding.
"""

import numpy as np

PADDING = 0  # every id of a padding token; masked
BEGIN_SENTENCE = 257
END_SENTENCE = 258
BEGIN_WORD = 259
END_WORD = 260
PAD = 261  # after a real token's END_WORD; a character like any other, with a trained vector
NUM_CHARS = 262  # rows of the character table, the constant zero row of PADDING included

MAX_CHARS_PER_TOKEN = 50  # BEGIN_WORD, up to 48 bytes, END_WORD
NUM_MARKS = 2  # ids that BEGIN_WORD and END_WORD take

BEGIN_SENTENCE_TOKEN = b"<S>"
END_SENTENCE_TOKEN = b"</S>"
SENTENCE_MARKS = {BEGIN_SENTENCE_TOKEN: BEGIN_SENTENCE, END_SENTENCE_TOKEN: END_SENTENCE}


def encode_tokens(tokens: list[bytes], max_chars_per_token: int = MAX_CHARS_PER_TOKEN) -> np.ndarray:
    """Returns the character ids of `tokens`, int32 `(len(tokens), max_chars_per_token)`.

    A token longer than `max_chars_per_token - 2` bytes is cut there, even inside a character. `<S>` and `</S>` become
    the sentence marks.
    """
    lengths = np.array([len(token) for token in tokens], np.int64)
    return encode_bytes(np.frombuffer(b"".join(tokens), np.uint8), lengths, max_chars_per_token)


def encode_bytes(values: np.ndarray, lengths: np.ndarray, max_chars_per_token: int = MAX_CHARS_PER_TOKEN) -> np.ndarray:
    """Returns the character ids of tokens that are given as one run of bytes.

    Args:
        values: uint8 `(sum(lengths),)`, the tokens' bytes, one token after the other.
        lengths: integers `(num_tokens,)`, bytes a token.
        max_chars_per_token: ids a token; longer tokens are cut.

    Returns:
        int32 `(num_tokens, max_chars_per_token)`.
    """
    lengths = lengths.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(values)) - starts[rows]
    kept = columns < max_chars_per_token - NUM_MARKS
    ids = np.full((len(lengths), max_chars_per_token), PAD, np.int32)
    ids[:, 0] = BEGIN_WORD
    ids[rows[kept], columns[kept] + 1] = values[kept].astype(np.int32) + 1
    ids[np.arange(len(lengths)), np.minimum(lengths, max_chars_per_token - NUM_MARKS) + 1] = END_WORD
    for token, mark in SENTENCE_MARKS.items():
        spelled = np.frombuffer(token, np.uint8)
        candidates = np.flatnonzero(lengths == len(token))
        matches = (values[starts[candidates][:, None] + np.arange(len(token))] == spelled).all(axis=1)
        ids[candidates[matches]] = boundary(mark, max_chars_per_token)
    return ids


def boundary(mark: int, max_chars_per_token: int = MAX_CHARS_PER_TOKEN) -> np.ndarray:
    """Returns the ids of a sentence boundary, int32 `(max_chars_per_token,)`; `mark` is BEGIN_ or END_SENTENCE."""
    ids = np.full(max_chars_per_token, PAD, np.int32)
    ids[:3] = BEGIN_WORD, mark, END_WORD
    return ids
