"""Training input: windows of both directions, cut from streams of sentences, resumable to the token.

Every batch row is a stream: when its sentence ends, the next sentence of the corpus follows, and the LSTM state carries
over (bilm-tf, `bilm/data.py`, `BidirectionalLMDataset`). Both directions read the same sentences, the backward
direction each in reverse.
"""

import collections
import concurrent.futures
import dataclasses
import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files.json_file import Count
from elmo_tf.records import blocks, record_folder
from elmo_tf.records.blocks import Block, read_epoch
from elmo_tf.records.streams import EpochBlock, Part, Streams
from elmo_tf.text import char_ids as char_ids_lib

_WAIT_SECONDS = 0.1  # between checks whether to keep waiting


class Window(NamedTuple):
    """`unroll_steps` tokens of every stream, in both directions."""

    # int32 (2 * batch_size * unroll_steps, max_chars_per_token): the distinct tokens of the inputs, then rows of 0
    char_ids: np.ndarray
    forward_words: np.ndarray  # int32 (batch_size, unroll_steps), the row of `char_ids` of each input
    forward_token_ids: np.ndarray  # int32 (batch_size, unroll_steps)
    forward_targets: np.ndarray  # int32 (batch_size, unroll_steps), the tokens after the inputs
    backward_words: np.ndarray
    backward_targets: np.ndarray  # the tokens before the inputs
    mask: np.ndarray  # bool (batch_size, unroll_steps); False after a stream's end, where all ids are 0

    @classmethod
    def of(cls, char_ids: np.ndarray, token_ids: np.ndarray, targets: np.ndarray, mask: np.ndarray) -> "Window":
        """Returns the window of inputs and targets; a first dimension of 2 is the direction, forward first.

        Distinct tokens are looked up here, before the step: in a graph that needs strings, which GPUs do not support.

        Args:
            char_ids: uint16 `(2, batch_size, unroll_steps, max_chars_per_token)`, contiguous.
            token_ids: int32 `(batch_size, unroll_steps)`, forward.
            targets: int32 `(2, batch_size, unroll_steps)`.
            mask: bool `(batch_size, unroll_steps)`.
        """
        rows = char_ids.reshape(-1, char_ids.shape[-1])
        distinct, indices = char_ids_lib.distinct_rows(rows)
        table = np.zeros(rows.shape, np.int32)
        table[: len(distinct)] = distinct
        forward, backward = indices.reshape(targets.shape)
        return cls(table, forward, token_ids, targets[0], backward, targets[1], mask)

    def part(self, start: int, stop: int) -> "Window":
        """Returns the window of the streams from `start` to `stop`, without the other streams' tokens."""
        if start == 0 and stop == len(self.mask):
            return self
        part = Window(self.char_ids, *(array[start:stop] for array in self[1:]))
        words = np.stack([part.forward_words, part.backward_words])
        used = list(dict.fromkeys(words.ravel().tolist()))
        numbers = np.zeros(len(self.char_ids), np.int32)
        numbers[used] = np.arange(len(used))
        table = np.zeros((words.size, self.char_ids.shape[1]), np.int32)
        table[: len(used)] = self.char_ids[used]
        forward_words, backward_words = numbers[words]
        return part._replace(char_ids=table, forward_words=forward_words, backward_words=backward_words)


class Position(msgspec.Struct, frozen=True):
    """Position of all streams between two windows: enough to reproduce the next window."""

    epoch: Count
    sentence: Count  # sentences of the epoch that are assigned to a stream
    rows: tuple[tuple[bytes, Count] | None, ...]  # each stream's current record and its tokens already used


@dataclasses.dataclass(eq=False)
class Windows:
    """Iterates over pairs of a window and the `Position` after it.

    Args:
        records: the folder to read.
        batch_size: streams, of all replicas together.
        unroll_steps: tokens per window.
        max_chars_per_token: character ids per token.
        seed: shuffles the sentences, differently each epoch; None keeps the files' order.
        epochs: passes over the corpus, the last window padded at the end; None: no end.
        position: where to start; None: at the beginning.
        rows: the streams that the windows contain; None: all. The position is always that of all streams.

    Raises:
        InputError: while iterating, if a record is damaged, `records` has no sentences, or `position` does not fit.
    """

    records: record_folder.Records
    batch_size: int
    unroll_steps: int
    max_chars_per_token: int = char_ids_lib.MAX_CHARS_PER_TOKEN
    seed: int | None = None
    epochs: int | None = None
    position: Position | None = None
    rows: range | None = None

    def __post_init__(self) -> None:
        self._rows = range(self.batch_size) if self.rows is None else self.rows
        self._position = self.position or Position(0, 0, (None,) * self.batch_size)

    def __iter__(self) -> Iterator[tuple[Window, Position]]:
        streams = Streams(self._blocks(), self.batch_size, self._resumed())
        epoch, sentence = self._position.epoch, self._position.sentence
        for end in itertools.count(self.unroll_steps, self.unroll_steps):
            parts = streams.fill(end)
            if not parts:
                return
            window = self._cut(parts, end)
            epoch, sentence = streams.assigned or (epoch, sentence)
            yield window, Position(epoch, sentence, streams.drop_before(end))

    def _cut(self, parts: list[Part], end: int) -> Window:
        """Returns the window of the streams `rows` up to `end`."""
        size, shape = len(self._rows) * self.unroll_steps, (2, len(self._rows), self.unroll_steps)
        char_ids = np.zeros((2, size, self.max_chars_per_token), np.uint16)  # forward, backward
        token_ids, targets = np.zeros(size, np.int32), np.zeros((2, size), np.int32)
        mask = np.zeros(size, bool)
        if len(self._rows) < self.batch_size:
            local_parts = (part.among(self._rows) for part in parts)
            parts = [part for part in local_parts if len(part.numbers)]
        for part in parts:
            indices, *sources = part.cut(end - self.unroll_steps, end)
            mask[indices] = True
            token_ids[indices] = part.block.token_ids[sources[0]]
            for direction, source, step in zip((0, 1), sources, (1, -1), strict=True):
                char_ids_lib.put_rows(char_ids[direction], indices, part.block.words.char_ids(source))
                targets[direction, indices] = part.block.token_ids[source + step]
        by_token = char_ids.reshape(*shape, self.max_chars_per_token)
        return Window.of(by_token, token_ids.reshape(shape[1:]), targets.reshape(shape), mask.reshape(shape[1:]))

    def _resumed(self) -> list[Part]:
        """Returns the sentences that the position's streams have begun."""
        if len(self._position.rows) != self.batch_size:
            raise InputError("position", f"{len(self._position.rows)} streams, not {self.batch_size}")
        rows = [(*row, stream) for stream, row in enumerate(self._position.rows) if row]
        if not rows:
            return []
        records, used, streams = zip(*rows, strict=True)
        try:
            block = Block(list(records), len(self.records.vocabulary), self.max_chars_per_token)
        except blocks.InvalidRecordError as error:
            problem = f"the record of stream {streams[error.index]} is not a sentence: {error.problem}"
            raise InputError("position", problem) from None
        for stream, consumed, length in zip(streams, used, block.num_tokens.tolist(), strict=True):
            if consumed >= length - 1:
                problem = f"stream {stream} has used {consumed} tokens of a sentence that has {length - 1}"
                raise InputError("position", problem)
        return [Part(block, np.arange(len(rows)), np.array(streams), -np.array(used))]

    def _blocks(self) -> Iterator[EpochBlock]:
        """Yields the remaining sentences."""
        epoch, start = self._position.epoch, self._position.sentence
        while self.epochs is None or epoch < self.epochs:
            first = start
            for block in read_epoch(self.records, self.seed, epoch, start, self.max_chars_per_token):
                yield EpochBlock(epoch, start, block)
                start += len(block.records)
            if start == first == 0:
                raise InputError(str(self.records.path), "no sentences")
            epoch, start = epoch + 1, 0


def prefetch(
    items: Iterator, depth: int = 4, interrupted: Callable[[], bool] = lambda: False
) -> Generator[Any, None, None]:
    """Yields `items`, computed up to `depth` ahead in another thread; an exception there is raised here.

    `interrupted` is called while the next item is not ready; once it returns True, the iteration ends.
    """
    end = object()
    thread = concurrent.futures.ThreadPoolExecutor(1)
    pending = collections.deque(thread.submit(next, items, end) for _ in range(depth))
    try:
        while True:
            concurrent.futures.wait([pending[0]], _WAIT_SECONDS)
            if pending[0].done():
                item = pending.popleft().result()
                if item is end:
                    return
                pending.append(thread.submit(next, items, end))
                yield item
            elif interrupted():
                return
    finally:
        thread.shutdown(wait=False, cancel_futures=True)
