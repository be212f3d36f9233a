"""Records as training input: windows of both directions, cut from streams of sentences, resumable to the token.

Every batch row is a stream: when its sentence ends, the next sentence of the corpus follows at once, and the LSTM state
is carried on (bilm-tf, `bilm/data.py`, `BidirectionalLMDataset`). Both directions read the same sentences; the backward
one reads each from its end.
"""

import base64
import contextlib
import dataclasses
import itertools
import json
import queue
import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elmo_tf.data import char_ids as char_ids_lib
from elmo_tf.data import records as records_lib

_POOL_SHARDS = 8  # shards that are in memory, and so shuffled together, at a time
_DECODE_AT_ONCE = 256  # sentences whose character ids are made in one go


class Window(NamedTuple):
    """`unroll_steps` tokens of every stream, in both directions."""

    forward_char_ids: np.ndarray  # int32 (batch_size, unroll_steps, max_chars_per_token)
    forward_token_ids: np.ndarray  # int32 (batch_size, unroll_steps)
    forward_targets: np.ndarray  # int32 (batch_size, unroll_steps), the tokens after the inputs
    backward_char_ids: np.ndarray
    backward_token_ids: np.ndarray
    backward_targets: np.ndarray  # the tokens before the inputs
    mask: np.ndarray  # bool (batch_size, unroll_steps); False after a stream's end, for which all ids are 0


@dataclasses.dataclass(frozen=True)
class Position:
    """Where the streams stand between two windows: enough to cut the very next window again."""

    epoch: int = 0
    sentence: int = 0  # sentences of the epoch already given to a stream
    rows: tuple[tuple[bytes, int] | None, ...] = ()  # each stream's current record and its tokens already used

    def to_json(self) -> str:
        """Returns the position as JSON."""
        rows = [row and [base64.b64encode(row[0]).decode(), row[1]] for row in self.rows]
        return json.dumps({"epoch": self.epoch, "sentence": self.sentence, "rows": rows})

    @classmethod
    def from_json(cls, text: str) -> "Position":
        """Returns the position that `to_json` wrote."""
        values = json.loads(text)
        rows = tuple(row and (base64.b64decode(row[0]), row[1]) for row in values["rows"])
        return cls(values["epoch"], values["sentence"], rows)


class _Stream(NamedTuple):
    """One batch row's sentence and how far it is used."""

    record: bytes
    token_ids: np.ndarray  # (n + 2,)
    char_ids: np.ndarray  # (n + 2, max_chars_per_token)
    used: int


class Windows:
    """Iterates over `(Window, Position)`, the position being the one after that window.

    Args:
        records: the folder to read.
        batch_size: streams, of all replicas together.
        unroll_steps: tokens a window.
        max_chars_per_token: character ids a token.
        seed: shuffles the sentences anew each epoch; None keeps the files' order.
        epochs: passes over the corpus, the last window padded at the end; None goes on for ever.
        position: where to go on; None starts at the beginning.
    """

    def __init__(
        self,
        records: records_lib.Records,
        batch_size: int,
        unroll_steps: int,
        max_chars_per_token: int = char_ids_lib.MAX_CHARS_PER_TOKEN,
        seed: int | None = None,
        epochs: int | None = None,
        position: Position | None = None,
    ):
        self.records = records
        self.batch_size = batch_size
        self.unroll_steps = unroll_steps
        self.max_chars_per_token = max_chars_per_token
        self.seed = seed
        self.epochs = epochs
        self._position = position or Position(rows=(None,) * batch_size)

    def __iter__(self) -> Iterator[tuple[Window, Position]]:
        sentences = self._sentences()
        epoch, sentence = self._position.epoch, self._position.sentence
        rows = [row and self._decode([row[0]])[0]._replace(used=row[1]) for row in self._position.rows]
        while True:
            window = self._empty_window()
            for number in range(self.batch_size):
                filled = 0
                while filled < self.unroll_steps:
                    if rows[number] is None:
                        epoch, sentence, rows[number] = next(sentences, (epoch, sentence, None))
                        if rows[number] is None:
                            break
                    rows[number], filled = self._fill(window, number, filled, rows[number])
            if not window.mask.any():
                return
            yield window, Position(epoch, sentence, tuple(row and (row.record, row.used) for row in rows))

    def _empty_window(self) -> Window:
        shape = (self.batch_size, self.unroll_steps)
        direction = [np.zeros(one, np.int32) for one in ((*shape, self.max_chars_per_token), shape, shape) * 2]
        return Window(*direction, np.zeros(shape, bool))

    def _fill(self, window: Window, number: int, filled: int, row: _Stream) -> tuple[_Stream | None, int]:
        """Copies what fits of a sentence into a row; returns what is left of it, and how full the row is now."""
        available = len(row.token_ids) - 1 - row.used
        count = min(available, self.unroll_steps - filled)
        place = (number, slice(filled, filled + count))
        inputs, targets = slice(row.used, row.used + count), slice(row.used + 1, row.used + count + 1)
        window.forward_char_ids[place] = row.char_ids[inputs]
        window.forward_token_ids[place] = row.token_ids[inputs]
        window.forward_targets[place] = row.token_ids[targets]
        window.backward_char_ids[place] = row.char_ids[::-1][inputs]
        window.backward_token_ids[place] = row.token_ids[::-1][inputs]
        window.backward_targets[place] = row.token_ids[::-1][targets]
        window.mask[place] = True
        return (row._replace(used=row.used + count) if count < available else None), filled + count

    def _sentences(self) -> Iterator[tuple[int, int, _Stream]]:
        """Yields the sentences still to come, each with the epoch and the count of sentences used after it."""
        epoch, start = self._position.epoch, self._position.sentence
        while self.epochs is None or epoch < self.epochs:
            order = self._epoch(epoch, start)
            number = start
            while chunk := list(itertools.islice(order, _DECODE_AT_ONCE)):
                for stream in self._decode(chunk):
                    number += 1
                    yield epoch, number, stream
            epoch, start = epoch + 1, 0

    def _epoch(self, epoch: int, start: int) -> Iterator[bytes]:
        """Yields one epoch's records in its order, without the first `start`."""
        shards = list(zip(self.records.shards, self.records.info["shards"], strict=True))
        random = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        if random is not None:
            shards = [shards[index] for index in random.permutation(len(shards))]
        for first in range(0, len(shards), _POOL_SHARDS):
            pool = shards[first : first + _POOL_SHARDS]
            count = sum(info["sentences"] for _, info in pool)
            order = np.arange(count) if random is None else random.permutation(count)
            if start >= count:
                start -= count
                continue
            loaded = [record for path, _ in pool for record in records_lib.read_shard(path)]
            for index in order[start:]:
                yield loaded[index]
            start = 0

    def _decode(self, chunk: list[bytes]) -> list[_Stream]:
        """Returns the sentences of some records, their character ids made together."""
        sentences = [records_lib.decode_example(record) for record in chunk]
        ids = char_ids_lib.encode_bytes(
            np.concatenate([sentence.char_bytes for sentence in sentences]),
            np.concatenate([sentence.char_lengths for sentence in sentences]),
            self.max_chars_per_token,
        )
        begin = char_ids_lib.boundary(char_ids_lib.BEGIN_SENTENCE, self.max_chars_per_token)[None]
        end = char_ids_lib.boundary(char_ids_lib.END_SENTENCE, self.max_chars_per_token)[None]
        ends = np.cumsum([len(sentence.char_lengths) for sentence in sentences])
        inner = np.split(ids, ends[:-1])
        return [
            _Stream(record, sentence.token_ids, np.concatenate([begin, tokens, end]), 0)
            for record, sentence, tokens in zip(chunk, sentences, inner, strict=True)
        ]


def prefetch(items: Iterator, depth: int = 4) -> Iterator:
    """Yields `items`, made up to `depth` ahead in a thread of their own; an exception there is raised here."""
    done = object()
    made: queue.Queue = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(item) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                made.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for item in items:
                put((item, None))
                if stop.is_set():
                    return
            put((done, None))
        except Exception as error:
            put((done, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if item is done:
                return
            yield item
    finally:
        stop.set()
