"""The sentences of an epoch in its order, decoded block by block.

The shards are shuffled; then the sentences of every few shards (a pool) are shuffled among each other. A pool is held
in memory as it is in the files.
"""

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
_FEATURES = {
    "token_ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "char_ids": tf.io.FixedLenFeature([], tf.string),
    "char_lengths": tf.io.FixedLenFeature([], tf.string),
}


class Block:
    """Sentences end to end, with an item per token, `<S>` and `</S>` included; arguments as for `decode_examples`."""

    def __init__(self, records: list[bytes], vocab_size: int, max_chars_per_token: int):
        sentences = decode_examples(records, vocab_size)
        last = np.cumsum(sentences.num_tokens) - 1
        first = last + 1 - sentences.num_tokens
        inner = np.ones(len(sentences.token_ids), bool)
        inner[first] = inner[last] = False
        lengths = np.zeros(len(inner), np.uint8)
        lengths[inner] = sentences.char_lengths
        self.records = records
        self.num_tokens = sentences.num_tokens  # int64 (num_sentences,)
        self.first, self.last = first, last  # int64 (num_sentences,), indices of each <S> and each </S>
        self.token_ids = sentences.token_ids  # int32
        self.words = char_ids_lib.Words(sentences.char_bytes, lengths, max_chars_per_token)
        self.words.set_boundary(first, char_ids_lib.BEGIN_SENTENCE)
        self.words.set_boundary(last, char_ids_lib.END_SENTENCE)


class _Pool:
    """Some shards in memory."""

    def __init__(self, shards: list[record_folder.Shard]):
        self._shards = shards
        self._before = np.cumsum([0] + [len(shard.starts) for shard in shards])  # records before each shard
        self._starts = np.concatenate([shard.starts for shard in shards])
        self._ends = np.concatenate([shard.ends for shard in shards])

    def block(self, numbers: np.ndarray, vocab_size: int, max_chars_per_token: int) -> Block:
        """Returns the sentences with these numbers."""
        contents = [shard.content for shard in self._shards]
        shards = self._shard_of(numbers).tolist()
        ranges = zip(shards, self._starts[numbers].tolist(), self._ends[numbers].tolist(), strict=True)
        records = [contents[shard][start:end] for shard, start, end in ranges]
        try:
            return Block(records, vocab_size, max_chars_per_token)
        except UnfitRecordError as error:
            number = numbers[error.number]
            path = self._shards[int(self._shard_of(number))].path
            offset = self._starts[number] - wire.HEADER_BYTES
            raise InputError(str(path), f"the record at byte {offset} is not a sentence: {error.problem}") from None

    def split(self, order: np.ndarray) -> list[np.ndarray]:
        """Splits an order of record numbers into blocks."""
        size = np.cumsum((self._ends - self._starts)[order])
        block = np.maximum.accumulate(np.arange(len(order)) // _BLOCK_SENTENCES + size // _BLOCK_BYTES)
        return np.split(order, np.flatnonzero(np.diff(block)) + 1)

    def _shard_of(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the index of each record's shard."""
        return np.searchsorted(self._before, numbers, side="right") - 1


def read_epoch(
    records: record_folder.Records, seed: int | None, epoch: int, start: int, max_chars_per_token: int
) -> Iterator[Block]:
    """Yields the sentences of an epoch from number `start` on, in the order that `seed` and `epoch` determine.

    Without a seed, that is the order of the files.

    Raises:
        InputError: naming shard and byte, if a record is damaged or is not a sentence of the folder's vocabulary.
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
        pool = _Pool([_load(path, info.sentences) for path, info in chosen])
        for numbers in pool.split(order[start:]):
            yield pool.block(numbers, len(records.vocabulary), max_chars_per_token)
        del pool  # before the next block is read
        start = 0


def _load(path: pathlib.Path, num_sentences: int) -> record_folder.Shard:
    shard = record_folder.load_shard(path)
    if len(shard.starts) != num_sentences:
        raise InputError(str(path), f"it has {len(shard.starts)} sentences, not the {num_sentences} of info.json")
    return shard


class UnfitRecordError(Exception):
    """The record of index `number` is not a sentence; `problem` says why."""

    def __init__(self, problem: str, number: int):
        super().__init__(problem, number)
        self.problem, self.number = problem, number


class Sentences(NamedTuple):
    """Sentences end to end."""

    num_tokens: np.ndarray  # int64 (num_sentences,), <S> and </S> included
    token_ids: np.ndarray  # int32 (sum(num_tokens),)
    char_lengths: np.ndarray  # uint8 (sum(num_tokens - 2),), without <S> and </S>
    char_bytes: np.ndarray  # uint8 (sum(char_lengths),), the bytes of the words


def decode_examples(records: list[bytes], vocab_size: int) -> Sentences:
    """Returns the sentences of one or more serialized `tf.train.Example`s, with token ids below `vocab_size`.

    Raises:
        UnfitRecordError: if a record lacks a feature, or its features do not fit together.
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
        problem = f"it has {num_tokens[number]} token_ids, not two more than its {num_words[number]} char_lengths"
        raise UnfitRecordError(problem, number)
    for number in np.flatnonzero(num_spelled != num_bytes)[:1]:
        problem = f"it has {num_bytes[number]} bytes of char_ids; its char_lengths add up to {num_spelled[number]}"
        raise UnfitRecordError(problem, number)
    _check_ids(ids, num_tokens, vocab_size)
    return Sentences(num_tokens, ids.astype(np.int32), char_lengths, char_bytes)


def _parsed(records: list[bytes]) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    try:
        return tf.io.parse_example(records, _FEATURES)
    # TensorFlow quotes the record in its message, which may then not be UTF-8.
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        if len(records) == 1:
            raise UnfitRecordError("it has no token_ids, char_ids or char_lengths", 0) from None
    # TensorFlow does not always say which record it is.
    for number, record in enumerate(records):
        try:
            _parsed([record])
        except UnfitRecordError as error:
            raise UnfitRecordError(error.problem, number) from None
    raise AssertionError("each record can be parsed alone, but not all together")


def _joined(strings: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bytes of all strings, uint8, and the length of each, int64."""
    values = strings.numpy().tolist()
    return np.frombuffer(b"".join(values), np.uint8), np.fromiter(map(len, values), np.int64, len(values))


def _check_ids(ids: np.ndarray, num_tokens: np.ndarray, vocab_size: int) -> None:
    last = np.cumsum(num_tokens) - 1
    first = last + 1 - num_tokens
    wrong = (ids < 0) | (ids >= vocab_size)
    wrong[first] |= ids[first] != vocabulary_lib.BEGIN_ID
    wrong[last] |= ids[last] != vocabulary_lib.END_ID
    for position in np.flatnonzero(wrong)[:1]:
        number = np.searchsorted(last, position)
        problem = (
            f"its token_ids have {ids[position]} as number {position - first[number]} of {num_tokens[number]}; they "
            f"should begin with {vocabulary_lib.BEGIN_ID}, end with {vocabulary_lib.END_ID} and be below {vocab_size}"
        )
        raise UnfitRecordError(problem, number)
