"""Assigns sentences to streams, the rows of the batch: a stream that runs out gets the next sentence.

A place in a stream is the number of tokens before it since the iteration began.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elmo_tf.records.blocks import Block


class Part(NamedTuple):
    """Sentences of one block, and their streams."""

    block: Block
    numbers: np.ndarray  # int64 (n,), which sentences of the block
    streams: np.ndarray  # int64 (n,), the stream of each
    begins: np.ndarray  # int64 (n,), the place of each sentence's first token

    @property
    def ends(self) -> np.ndarray:
        """The place after each last token; only one of <S> and </S> is an input."""
        return self.begins + self.block.num_tokens[self.numbers] - 1

    def cut(self, start: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the tokens of these sentences from `start` to `end`; each sentence has at least one there.

        Returns:
            three int64 arrays `(tokens,)`: each token's index in an array of all streams from `start` to `end`, one
            stream after the other; the index in the block of the forward direction's input, and of the backward's.
        """
        begins = np.maximum(self.begins, start)
        counts = np.minimum(self.ends, end) - begins
        of = np.repeat(np.arange(len(counts)), counts)
        step = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]
        places = (self.streams * (end - start) + begins - start)[of] + step
        used = (begins - self.begins)[of] + step
        return places, self.block.first[self.numbers][of] + used, self.block.last[self.numbers][of] - used

    def after(self, end: int) -> "Part":
        """Returns the sentences that continue after `end`."""
        chosen = self.ends > end
        return Part(self.block, self.numbers[chosen], self.streams[chosen], self.begins[chosen])

    def among(self, streams: range) -> "Part":
        """Returns the sentences of these streams, with the streams renumbered from 0."""
        chosen = (self.streams >= streams.start) & (self.streams < streams.stop)
        return Part(self.block, self.numbers[chosen], self.streams[chosen] - streams.start, self.begins[chosen])

    def join(self, other: "Part") -> "Part":
        """Returns these sentences followed by `other`, of the same block."""
        return Part(self.block, *(np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True)))


class Streams:
    """All streams, filled as far as needed.

    Args:
        blocks: sentences; each block with its epoch and the number of the epoch's sentences before it.
        count: number of streams.
        parts: the sentences that the streams start in.
    """

    def __init__(self, blocks: Iterator[tuple[int, int, Block]], count: int, parts: list[Part]):
        # Epoch of the last assigned sentence, and how many sentences of that epoch are assigned.
        self.dealt: tuple[int, int] | None = None
        self._blocks = blocks
        self._parts = parts
        self._ends = [0] * count
        for part in parts:
            for stream, end in zip(part.streams.tolist(), part.ends.tolist(), strict=True):
                self._ends[stream] = end
        # The current block, and the lengths of its remaining sentences, the next one last.
        self._opened: tuple[int, int, Block] | None = None
        self._lengths: list[int] = []

    def fill(self, end: int) -> list[Part]:
        """Assigns sentences until no stream ends before `end`, or none remain; returns the sentences of all streams.

        The first stream takes what it needs, then the second, and so on.
        """
        streams, begins = [], []
        for stream, place in enumerate(self._ends):
            begin = place
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

    def leave(self, end: int) -> tuple[tuple[bytes, int] | None, ...]:
        """Drops the sentences before `end`; returns each stream's record there and how many of its tokens are used."""
        self._parts = [left for part in self._parts if len((left := part.after(end)).numbers)]
        rows = [None] * len(self._ends)
        for block, numbers, streams, begins in self._parts:
            for number, stream, used in zip(numbers.tolist(), streams.tolist(), (end - begins).tolist(), strict=True):
                rows[stream] = block.records[number], used
        return tuple(rows)

    def _add(self, streams: list[int], begins: list[int]) -> None:
        """Adds the newly assigned sentences to the parts."""
        if not streams:
            return
        epoch, before, block = self._opened
        count = len(block.records) - len(self._lengths)
        self.dealt = epoch, before + count
        part = Part(block, np.arange(count - len(streams), count), np.array(streams), np.array(begins))
        if self._parts and self._parts[-1].block is block:
            part = self._parts.pop().join(part)
        self._parts.append(part)

    def _open(self) -> bool:
        """Opens the next block; returns whether there is one."""
        following = next(self._blocks, None)
        if following is not None:
            self._opened = following
            self._lengths = (following[2].num_tokens - 1).tolist()[::-1]
        return following is not None
