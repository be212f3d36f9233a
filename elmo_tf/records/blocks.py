"""The sentences of an epoch in its order, decoded block by block.

The shards are shuffled; then the sentences of every few shards (a pool, in memory) are shuffled together.
"""

import contextlib
import itertools
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder, wire
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import vocabulary as vocabulary_lib

_POOL_SHARDS = 8  # shards in memory at a time
_BLOCK_SENTENCES = 2048  # enough to make the overhead of a NumPy call small
_BLOCK_BYTES = 1 << 22  # of records; limits blocks of long sentences
# TensorFlow quotes the record in its message, which may then not be UTF-8.
_PARSE_ERRORS = (tf.errors.InvalidArgumentError, UnicodeDecodeError)
_FEATURES = {
    "token_ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "char_ids": tf.io.FixedLenFeature([], tf.string),
    "char_lengths": tf.io.FixedLenFeature([], tf.string),
}


class Block:
    """Sentences end to end, with an item per token, `<S>` and `</S>` included; arguments as for `decode_examples`."""

    def __init__(self, records: list[bytes], vocab_size: int, max_chars_per_token: int):
        sentences = decode_examples(records, vocab_size)
        self.records = records
        self.num_tokens = sentences.num_tokens  # int64 (num_sentences,)
        # Indices of each <S> and each </S>, int64 (num_sentences,).
        self.first, self.last = _first_and_last(sentences.num_tokens)
        self.token_ids = sentences.token_ids  # int32
        inner = np.ones(len(sentences.token_ids), bool)
        inner[self.first] = inner[self.last] = False
        lengths = np.zeros(len(inner), np.uint8)
        lengths[inner] = sentences.char_lengths
        self.words = char_ids_lib.Words(sentences.char_bytes, lengths, max_chars_per_token)
        self.words.set_boundary(self.first, char_ids_lib.BEGIN_SENTENCE)
        self.words.set_boundary(self.last, char_ids_lib.END_SENTENCE)


class _Pool:
    """The records of some shards, in memory."""

    def __init__(self, shards: list[tuple[pathlib.Path, list[bytes]]]):
        self._shards = shards
        self._records = list(itertools.chain.from_iterable(records for _, records in shards))

    def block(self, numbers: np.ndarray, vocab_size: int, max_chars_per_token: int) -> Block:
        """Returns the sentences with these numbers."""
        try:
            return Block([self._records[number] for number in numbers.tolist()], vocab_size, max_chars_per_token)
        except InvalidRecordError as error:
            path, offset = self._position(int(numbers[error.index]))
            raise InputError(str(path), f"the record at byte {offset} is not a sentence: {error.problem}") from None

    def split(self, order: np.ndarray) -> list[np.ndarray]:
        """Splits an order of record numbers into blocks."""
        sizes = np.fromiter(map(len, self._records), np.int64, len(self._records))
        block = np.maximum.accumulate(
            np.arange(len(order)) // _BLOCK_SENTENCES + np.cumsum(sizes[order]) // _BLOCK_BYTES
        )
        return np.split(order, np.flatnonzero(np.diff(block)) + 1)

    def _position(self, number: int) -> tuple[pathlib.Path, int]:
        """Returns the shard of a record and the byte at which the record begins."""
        index = 0
        while number >= len(self._shards[index][1]):
            number -= len(self._shards[index][1])
            index += 1
        path, records = self._shards[index]
        return path, sum(wire.HEADER_BYTES + len(record) + wire.CHECKSUM_BYTES for record in records[:number])


def read_epoch(
    records: record_folder.Records, seed: int | None, epoch: int, start: int, max_chars_per_token: int
) -> Iterator[Block]:
    """Yields the sentences of an epoch from number `start` on, in the order that `seed` and `epoch` determine.

    Without a seed, that is the order of the files. An `InputError` names the shard and the byte of a damaged record.
    """
    shards = list(zip(records.shards, records.info.shards, strict=True))
    random = None if seed is None else np.random.default_rng([seed, epoch])
    if random is not None:
        shards = [shards[index] for index in random.permutation(len(shards))]
    for first in range(0, len(shards), _POOL_SHARDS):
        chosen = shards[first : first + _POOL_SHARDS]
        count = sum(info.sentences for _, info in chosen)
        order = np.arange(count) if random is None else random.permutation(count)
        if start >= count:
            start -= count
            continue
        pool = _Pool([(path, _load(path, info.sentences)) for path, info in chosen])
        for numbers in pool.split(order[start:]):
            yield pool.block(numbers, len(records.vocabulary), max_chars_per_token)
        del pool  # before the next block is read
        start = 0


def _load(path: pathlib.Path, num_sentences: int) -> list[bytes]:
    records = record_folder.read_shard(path)
    if len(records) != num_sentences:
        raise InputError(str(path), f"has {len(records)} sentences, info.json says {num_sentences}")
    return records


class InvalidRecordError(Exception):
    """The record at `index` is not a sentence; `problem` says why."""

    def __init__(self, problem: str, index: int):
        super().__init__(problem, index)
        self.problem, self.index = problem, index


class Sentences(NamedTuple):
    """Sentences end to end."""

    num_tokens: np.ndarray  # int64 (num_sentences,), <S> and </S> included
    token_ids: np.ndarray  # int32 (sum(num_tokens),)
    char_lengths: np.ndarray  # uint8 (sum(num_tokens - 2),), without <S> and </S>
    char_bytes: np.ndarray  # uint8 (sum(char_lengths),), the bytes of the words


def decode_examples(records: list[bytes], vocab_size: int) -> Sentences:
    """Returns the sentences of one or more serialized `tf.train.Example`s, with token ids below `vocab_size`.

    Raises `InvalidRecordError` if a record lacks a feature, or its features do not match.
    """
    features = _parsed(records)
    ids, num_tokens = features["token_ids"].values.numpy(), features["token_ids"].row_lengths().numpy()
    char_bytes, num_bytes = _joined(features["char_ids"])
    char_lengths, num_words = _joined(features["char_lengths"])
    # The sum of each record's lengths.
    ends = np.cumsum(num_words)
    sums = np.concatenate([[0], np.cumsum(char_lengths, dtype=np.int64)])
    num_spelled = sums[ends] - sums[ends - num_words]
    for number in np.flatnonzero(num_tokens != num_words + 2)[:1]:
        expected = num_words[number] + 2
        problem = f"{num_tokens[number]} token_ids for {num_words[number]} char_lengths; expected {expected}"
        raise InvalidRecordError(problem, number)
    for number in np.flatnonzero(num_spelled != num_bytes)[:1]:
        problem = f"it has {num_bytes[number]} bytes of char_ids; its char_lengths add up to {num_spelled[number]}"
        raise InvalidRecordError(problem, number)
    _check_ids(ids, num_tokens, vocab_size)
    return Sentences(num_tokens, ids.astype(np.int32), char_lengths, char_bytes)


def _parsed(records: list[bytes]) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    with contextlib.suppress(*_PARSE_ERRORS):
        return tf.io.parse_example(records, _FEATURES)
    # TensorFlow does not always say which record it is.
    for number, record in enumerate(records):
        try:
            tf.io.parse_example([record], _FEATURES)
        except _PARSE_ERRORS:
            raise InvalidRecordError("it has no token_ids, char_ids or char_lengths", number) from None
    raise AssertionError("each record can be parsed alone, but not all together")


def _joined(strings: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bytes of all strings, uint8, and the length of each, int64."""
    values = strings.numpy().tolist()
    return np.frombuffer(b"".join(values), np.uint8), np.fromiter(map(len, values), np.int64, len(values))


def _first_and_last(num_tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the indices of the first and the last token of sentences that stand end to end."""
    ends = np.cumsum(num_tokens)
    return ends - num_tokens, ends - 1


def _check_ids(ids: np.ndarray, num_tokens: np.ndarray, vocab_size: int) -> None:
    first, last = _first_and_last(num_tokens)
    wrong = (ids < 0) | (ids >= vocab_size)
    wrong[first] |= ids[first] != vocabulary_lib.BEGIN_ID
    wrong[last] |= ids[last] != vocabulary_lib.END_ID
    for position in np.flatnonzero(wrong)[:1]:
        number = np.searchsorted(last, position)
        problem = (
            f"its token_ids have {ids[position]} as number {position - first[number]} of {num_tokens[number]}; they "
            f"should begin with {vocabulary_lib.BEGIN_ID}, end with {vocabulary_lib.END_ID} and be below {vocab_size}"
        )
        raise InvalidRecordError(problem, number)
