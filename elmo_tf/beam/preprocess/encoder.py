"""Sentences to TFRecords in bulk, with counts of what they hold."""

import itertools
from typing import NamedTuple

import numpy as np

from elmo_tf.corpus import sentences
from elmo_tf.records import wire
from elmo_tf.text import char_ids, vocabulary

COUNTED = ("sentences", "tokens", "characters", "unknown_tokens", "reserved_tokens", "cut_tokens", "bytes")
_MAX_WORD_BYTES = char_ids.MAX_CHARS_PER_TOKEN - char_ids.NUM_MARKS  # of a word; the rest is cut off


class Encoded(NamedTuple):
    """Sentences as TFRecords."""

    records: list[bytes]  # framed
    counts: np.ndarray  # int64 (len(records), len(COUNTED))


class Encoder:
    """Encodes sentences as records."""

    def __init__(self, words: vocabulary.Vocabulary):
        # Records hold ids as varints.
        self._varints = {word: wire.varint(number) for number, word in enumerate(words.tokens)}
        self._begin, self._end, self._unknown = (self._varints[word] for word in vocabulary.SPECIAL_TOKENS)

    def encode(self, block: list[sentences.Words]) -> Encoded:
        """Returns the records of sentences, which must not be empty."""
        words = list(itertools.chain.from_iterable(block))
        if not words:
            return Encoded([], np.zeros((0, len(COUNTED)), np.int64))
        unknown = self._unknown
        varints = list(map(self._varints.get, words, itertools.repeat(unknown)))
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        is_cut = lengths > _MAX_WORD_BYTES
        if is_cut.any():
            words = [word[:_MAX_WORD_BYTES] for word in words]
            lengths = np.minimum(lengths, _MAX_WORD_BYTES)
        text, sizes = b"".join(words), lengths.astype(np.uint8).tobytes()
        ends = np.cumsum([len(sentence) for sentence in block])
        text_ends = np.cumsum(lengths)[ends - 1]
        encoded, unknowns = [], []
        start = text_start = 0
        for end, text_end in zip(ends.tolist(), text_ends.tolist(), strict=True):
            inner = varints[start:end]
            token_ids = self._begin + b"".join(inner) + self._end
            record = wire.encode_example(token_ids, text[text_start:text_end], sizes[start:end])
            encoded.append(wire.frame(record))
            unknowns.append(inner.count(unknown))
            start, text_start = end, text_end
        starts = np.concatenate([[0], ends[:-1]])
        counts = np.empty((len(block), len(COUNTED)), np.int64)
        counts.T[:] = (
            np.ones_like(ends),
            ends - starts,
            np.diff(text_ends, prepend=0),
            unknowns,
            np.add.reduceat(_is_reserved(words, text), starts),
            np.add.reduceat(is_cut.astype(np.int64), starts),
            [len(record) for record in encoded],
        )
        return Encoded(encoded, counts)


def _is_reserved(words: list[bytes], text: bytes) -> np.ndarray:
    """Returns which words are spelled like a sentence boundary, given also the joined `text` of all words."""
    marks = char_ids.SENTENCE_MARKS
    # True for nearly all text.
    if not any(mark in text for mark in marks):
        return np.zeros(len(words), np.int64)
    return np.array([word in marks for word in words], np.int64)
