"""Decodes many serialized `tf.train.Example`s at once, because protobuf takes too long sentence by sentence.

Records have the layout that `wire.encode_example` writes, so array arithmetic reads all of them at once.
"""

from typing import NamedTuple

import numpy as np

from elmo_tf.text import vocabulary as vocabulary_lib

# Protobuf: a field is a tag (number * 8 + type), then for type 2 a length and that many bytes.
_FIELD_1, _FIELD_2, _FIELD_3 = 1 << 3 | 2, 2 << 3 | 2, 3 << 3 | 2
_BYTES_LIST, _INT64_LIST = _FIELD_1, _FIELD_3  # of a tf.train.Feature
_FEATURES = ((b"char_ids", _BYTES_LIST), (b"char_lengths", _BYTES_LIST), (b"token_ids", _INT64_LIST))  # sorted
_VARINT_BYTES = 10  # at most: 7 bits a byte
_MARGIN = 32  # zeros after the last record, so that reading a header past its end stays within the array


class UnfitRecordError(Exception):
    """The record of index `number` is not a sentence; `found` says what it is."""

    def __init__(self, found: str, number: int):
        super().__init__(found, number)
        self.found, self.number = found, number


class Sentences(NamedTuple):
    """Sentences end to end."""

    num_tokens: np.ndarray  # int64 (num_sentences,), <S> and </S> included
    token_ids: np.ndarray  # int32 (sum(num_tokens),)
    char_lengths: np.ndarray  # uint8 (sum(num_tokens - 2),), without <S> and </S>
    char_bytes: np.ndarray  # uint8 (sum(char_lengths),), the bytes of the words


def decode_examples(records: list[bytes], vocab_size: int) -> Sentences:
    """Returns the sentences of serialized `tf.train.Example`s, at least one, with token ids below `vocab_size`.

    Raises:
        UnfitRecordError: if one has another layout, or its features do not fit together.
    """
    data, fields, regular = _locate(records)
    for number in np.flatnonzero(~regular)[:1]:
        raise UnfitRecordError("bytes that elmo-tf preprocess does not write", number)
    (char_bytes, num_bytes), (char_lengths, num_words), (token_ids, num_id_bytes) = (
        (data[_ranges(starts, sizes)], sizes) for starts, sizes in fields
    )
    ids, num_tokens = _varints(token_ids, num_id_bytes)
    num_spelled = _sums(char_lengths, num_words)
    for number in np.flatnonzero(num_tokens != num_words + 2)[:1]:
        found = f"{num_tokens[number]} token_ids, not two more than {num_words[number]} char_lengths"
        raise UnfitRecordError(found, number)
    for number in np.flatnonzero(num_spelled != num_bytes)[:1]:
        found = f"{num_bytes[number]} bytes of char_ids, not {num_spelled[number]}, the sum of char_lengths"
        raise UnfitRecordError(found, number)
    last = np.cumsum(num_tokens) - 1
    first = last + 1 - num_tokens
    wrong = (ids < 0) | (ids >= vocab_size)
    wrong[first] |= ids[first] != vocabulary_lib.BEGIN_ID
    wrong[last] |= ids[last] != vocabulary_lib.END_ID
    for place in np.flatnonzero(wrong)[:1]:
        number = np.searchsorted(last, place)
        found = (
            f"{ids[place]} as number {place - first[number]} of {num_tokens[number]} token_ids, which should begin "
            f"with {vocabulary_lib.BEGIN_ID}, end with {vocabulary_lib.END_ID} and be below {vocab_size}"
        )
        raise UnfitRecordError(found, number)
    return Sentences(num_tokens, ids.astype(np.int32), char_lengths, char_bytes)


def _locate(records: list[bytes]) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Returns all bytes, the start and size in bytes of each feature's values, and which records are regular.

    A record is regular if it has the layout of `wire.encode_example`. Starts and sizes of others are meaningless.
    """
    reader = _Reader(records)
    reader.expect(reader.enter(_FIELD_1) == reader.ends)
    fields = []
    for key, kind in _FEATURES:
        end = reader.enter(_FIELD_1)
        reader.skip(bytes([_FIELD_1, len(key)]) + key)
        for tag in (_FIELD_2, kind, _FIELD_1):
            reader.expect(reader.enter(tag) == end)
        fields.append((reader.at, end - reader.at))
        reader.at = end
    reader.expect(end == reader.ends)
    reader.expect(reader.data[end - 1] < 128)  # the last number is whole
    return reader.data, fields, reader.regular


class _Reader:
    """Reads many records at once, each of which should have the same fields."""

    def __init__(self, records: list[bytes]):
        self.data = np.frombuffer(b"".join([*records, bytes(_MARGIN)]), np.uint8)
        sizes = np.fromiter(map(len, records), np.int64, len(records))
        self.ends = np.cumsum(sizes)
        self.at = self.ends - sizes
        self.regular = np.ones(len(records), bool)

    def expect(self, is_so: np.ndarray) -> None:
        self.regular &= is_so

    def enter(self, tag: int) -> np.ndarray:
        """Skips a field's tag and length, and returns where its bytes end."""
        self.expect(self.data[self.at] == tag)
        size = self._varint(self.at + 1)
        end = self.at + size
        self.expect(end <= self.ends)
        return np.minimum(end, self.ends)

    def skip(self, expected: bytes) -> None:
        """Skips bytes that are the same in all records."""
        found = self.data[self.at[:, None] + np.arange(len(expected))]
        self.expect((found == np.frombuffer(expected, np.uint8)).all(axis=1))
        self.at = np.minimum(self.at + len(expected), self.ends)

    def _varint(self, at: np.ndarray) -> np.ndarray:
        """Skips the lengths at `at`, all below 2 ** 35, and returns them."""
        value, shift, more = np.zeros(len(at), np.int64), 0, np.ones(len(at), bool)
        while more.any() and shift < 35:
            byte = self.data[at]
            value |= np.where(more, (byte & 127).astype(np.int64) << shift, 0)
            at = at + more
            more &= byte >= 128
            shift += 7
        self.expect(~more)
        self.at = np.minimum(at, self.ends)
        return value


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Returns `start, start + 1, ...`, `count` integers for each pair, end to end, int64 `(sum(counts),)`."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def _varints(data: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers in `data`, int64, and how many of them each run of `size` bytes holds."""
    is_last = data < 128
    counts = _sums(is_last, sizes)
    last = np.flatnonzero(is_last)
    width = np.diff(last, prepend=-1)
    values = data[last].astype(np.int64)
    for back in range(1, min(width.max(initial=0), _VARINT_BYTES)):
        more = width > back
        values = np.where(more, values << 7 | data[last - back] & 127, values)
    values[width > _VARINT_BYTES] = -1  # not a number, and not a valid id
    return values, counts


def _sums(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns the sum of each run of `size` values, int64."""
    sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    ends = np.cumsum(sizes)
    return sums[ends] - sums[ends - sizes]
