"""Sentences to TFRecords in bulk, with counts of their contents."""

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
    counts: dict[str, int]  # by COUNTED


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
            return Encoded([], dict.fromkeys(COUNTED, 0))
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
        encoded = []
        start = text_start = 0
        for end, text_end in zip(ends.tolist(), text_ends.tolist(), strict=True):
            token_ids = self._begin + b"".join(varints[start:end]) + self._end
            record = wire.encode_example(token_ids, text[text_start:text_end], sizes[start:end])
            encoded.append(wire.frame(record))
            start, text_start = end, text_end
        counts = (
            len(block),
            len(words),
            len(text),
            varints.count(unknown),
            _num_reserved(words, text),
            int(is_cut.sum()),
            sum(map(len, encoded)),
        )
        return Encoded(encoded, dict(zip(COUNTED, counts, strict=True)))


def _num_reserved(words: list[bytes], text: bytes) -> int:
    """Returns how many words are spelled like a sentence boundary, given also the joined `text` of all words."""
    marks = char_ids.SENTENCE_MARKS
    # True for nearly all text.
    if not any(mark in text for mark in marks):
        return 0
    return sum(word in marks for word in words)
