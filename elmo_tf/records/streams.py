"""Assigns sentences to streams, the rows of the batch: a stream that runs out gets the next sentence.

A position in a stream is the number of tokens before it since the iteration began.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elmo_tf.records.blocks import Block


class EpochBlock(NamedTuple):
    """A block of an epoch's sentences."""

    epoch: int
    sentences_before: int  # of the epoch, before this block
    block: Block


class Part(NamedTuple):
    """Sentences of a block, and their streams."""

    block: Block
    numbers: np.ndarray  # int64 (num_sentences,), which sentences of the block
    streams: np.ndarray  # int64 (num_sentences,), the stream of each
    begins: np.ndarray  # int64 (num_sentences,), the position of each sentence's first token

    @property
    def ends(self) -> np.ndarray:
        """The position after each last token; only one of <S> and </S> is an input."""
        return self.begins + self.block.num_tokens[self.numbers] - 1

    def cut(self, start: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the tokens of these sentences from `start` to `end`; each sentence has a token there.

        Returns:
            three int64 arrays `(tokens,)`: each token's index in an array of all streams from `start` to `end`,
            stream after stream; the index in the block of the forward direction's input, and of the backward's.
        """
        begins = np.maximum(self.begins, start)
        counts = np.minimum(self.ends, end) - begins
        sentence = np.repeat(np.arange(len(counts)), counts)  # of each token
        step = np.arange(len(sentence)) - (np.cumsum(counts) - counts)[sentence]
        indices = (self.streams * (end - start) + begins - start)[sentence] + step
        consumed = (begins - self.begins)[sentence] + step
        first, last = self.block.first[self.numbers][sentence], self.block.last[self.numbers][sentence]
        return indices, first + consumed, last - consumed

    def after(self, end: int) -> "Part":
        """Returns the sentences that continue after `end`."""
        return self._where(self.ends > end)

    def among(self, streams: range) -> "Part":
        """Returns the sentences of these streams, with the streams renumbered from 0."""
        chosen = self._where((self.streams >= streams.start) & (self.streams < streams.stop))
        return chosen._replace(streams=chosen.streams - streams.start)

    def join(self, other: "Part") -> "Part":
        """Returns these sentences followed by `other`, of the same block."""
        return Part(self.block, *(np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True)))

    def _where(self, chosen: np.ndarray) -> "Part":
        return Part(self.block, *(array[chosen] for array in self[1:]))


class Streams:
    """`count` streams, filled with the sentences of `blocks` as far as needed; `parts` are those they start in."""

    def __init__(self, blocks: Iterator[EpochBlock], count: int, parts: list[Part]):
        # The epoch of the last assigned sentence, and how many sentences of that epoch are assigned.
        self.assigned: tuple[int, int] | None = None
        self._blocks = blocks
        self._parts = parts
        self._ends = [0] * count
        for part in parts:
            for stream, end in zip(part.streams.tolist(), part.ends.tolist(), strict=True):
                self._ends[stream] = end
        self._current: EpochBlock | None = None
        self._lengths: list[int] = []  # of the current block's unassigned sentences, the next sentence last

    def fill(self, end: int) -> list[Part]:
        """Assigns sentences until no stream ends before `end`, or none remain; returns the sentences of all streams.

        The first stream takes what it needs, then the second, and so on.
        """
        streams: list[int] = []
        begins: list[int] = []
        for stream, stream_end in enumerate(self._ends):
            begin = stream_end
            while begin < end:
                if not self._lengths:
                    self._add(streams, begins)
                    streams, begins = [], []
                    if not self._open():
                        break
                streams.append(stream)
                begins.append(begin)
                begin += self._lengths.pop()
            self._ends[stream] = begin
        self._add(streams, begins)
        return self._parts

    def drop_before(self, end: int) -> tuple[tuple[bytes, int] | None, ...]:
        """Forgets the sentences that end at `end` or before.

        Returns:
            for each stream, its record at `end` and how many of the record's tokens come before; None: no record.
        """
        remaining = (part.after(end) for part in self._parts)
        self._parts = [part for part in remaining if len(part.numbers)]
        rows: list[tuple[bytes, int] | None] = [None] * len(self._ends)
        for block, numbers, streams, begins in self._parts:
            for number, stream, used in zip(numbers.tolist(), streams.tolist(), (end - begins).tolist(), strict=True):
                rows[stream] = block.records[number], used
        return tuple(rows)

    def _add(self, streams: list[int], begins: list[int]) -> None:
        """Adds newly assigned sentences, the last ones taken from the current block, to the parts."""
        if self._current is None or not streams:
            return
        epoch, sentences_before, block = self._current
        count = len(block.records) - len(self._lengths)
        self.assigned = epoch, sentences_before + count
        part = Part(block, np.arange(count - len(streams), count), np.array(streams), np.array(begins))
        if self._parts and self._parts[-1].block is block:
            part = self._parts.pop().join(part)
        self._parts.append(part)

    def _open(self) -> bool:
        """Makes the next block the current one; returns whether there is any."""
        following = next(self._blocks, None)
        if following is not None:
            self._current = following
            self._lengths = (following.block.num_tokens - 1).tolist()[::-1]
        return following is not None
