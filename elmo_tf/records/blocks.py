"""The sentences of an epoch in its order, decoded block by block.

The shards are shuffled; then the sentences of every few shards (a pool) are shuffled among each other. A pool is held
in memory as it is in the files.
"""

import pathlib
from collections.abc import Iterator

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.records import examples, record_folder, wire
from elmo_tf.text import char_ids as char_ids_lib

_POOL_SHARDS = 8  # shards in memory at a time
_BLOCK_SENTENCES = 2048  # enough to make the overhead of a NumPy call small
_BLOCK_BYTES = 1 << 22  # of records; limits blocks of long sentences


class Block:
    """Sentences end to end, with an item per token, `<S>` and `</S>` included; arguments as for `decode_examples`."""

    def __init__(self, records: list[bytes], vocab_size: int, max_chars_per_token: int):
        sentences = examples.decode_examples(records, vocab_size)
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
        except examples.UnfitRecordError as error:
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
