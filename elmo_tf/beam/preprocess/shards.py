"""Sentences to shards of TFRecords, as a Beam step.

A worker writes whole shards itself: the local runner keeps in memory what passes through Beam's shuffle or its TFRecord
sink, and both take several times as long.
"""

import collections
import contextlib
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from elmo_tf.beam.running import do_once, task_progress
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import corpora, filesystems, sentences
from elmo_tf.files.json_file import Count
from elmo_tf.records import record_folder, wire
from elmo_tf.text import char_ids, vocabulary

COUNTED = ("sentences", "tokens", "characters", "unknown_tokens", "reserved_tokens", "cut_tokens", "bytes")
_MOST_BYTES = char_ids.MAX_CHARS_PER_TOKEN - char_ids.NUM_MARKS  # of a word; the rest is cut off


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a shard holds."""

    split: str
    number: Count
    path: str
    counts: dict[str, Count]  # by COUNTED
    sha256: str


class Written(Result):
    """What was written to shards."""

    shards: list[Statistics]


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
        is_cut = lengths > _MOST_BYTES
        if is_cut.any():
            words = [word[:_MOST_BYTES] for word in words]
            lengths = np.minimum(lengths, _MOST_BYTES)
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


class Shard:
    """One TFRecord file while it is written, and its statistics."""

    def __init__(self, file: BinaryIO, split: str, number: int, path: str):
        self._file, self._about = file, {"split": split, "number": number, "path": path}
        self._checksum = hashlib.sha256()
        self._totals = np.zeros(len(COUNTED), np.int64)

    def write(self, encoded: Encoded) -> None:
        """Appends records."""
        content = b"".join(encoded.records)
        self._file.write(content)
        self._checksum.update(content)
        self._totals += encoded.counts.sum(axis=0)

    def statistics(self) -> Statistics:
        """Returns the totals of what is written so far."""
        counts = dict(zip(COUNTED, self._totals.tolist(), strict=True))
        return Statistics(**self._about, counts=counts, sha256=self._checksum.hexdigest())


class Output(NamedTuple):
    """The records to make."""

    journal: Journal  # in the folder of the training split
    folders: dict[str, str]  # of each split
    settings: sentences.Settings
    num_shards: int


class TextStep(do_once.DoOnce):
    """A step whose tasks are parts of the text, which become records."""

    def __init__(self, output: Output):
        super().__init__(output.journal)
        self._output = output

    def setup(self) -> None:
        path = filesystems.join(self._journal.folder, record_folder.VOCABULARY_FILE)
        self._encoder = Encoder(vocabulary.from_bytes(filesystems.read(path), path))
        self._reader = sentences.Reader(self._output.settings)

    def convert(
        self, task: corpora.Task, progress: task_progress.TaskProgress, irregular: collections.Counter
    ) -> Iterator[dict[str, Encoded]]:
        """Yields the records of each block of a task, by split; adds to `progress` and `irregular`."""
        for batch in self._reader.read(task):
            parts = self._output.settings.split(batch.sentences)
            encoded = {split: self._encoder.encode(found) for split, found in parts.items()}
            yield encoded
            irregular.update(batch.irregular)
            counts = sum(one.counts[:, :2].sum(axis=0) for one in encoded.values())
            progress.add(batch.size, *counts.tolist())


class WriteTask(TextStep):
    """`corpora.Task` -> its shards, in the order of the text."""

    phase = "write"
    kind = Written

    def do(self, task: corpora.Task, progress: task_progress.TaskProgress) -> Written:
        irregular, numbers = collections.Counter(), itertools.cycle(task.shards)
        with open_shards(self._output, task.shards) as shards:
            for encoded, number in zip(self.convert(task, progress, irregular), numbers, strict=False):
                for split in self._output.folders:
                    shards[split, number].write(encoded[split])
            return written(shards.values(), irregular)


@contextlib.contextmanager
def open_shards(output: Output, numbers: Iterable[int]) -> Iterator[dict[tuple[str, int], Shard]]:
    """Yields shards to write, by split and number. The files appear when the block ends without an exception."""
    with contextlib.ExitStack() as stack:
        shards = {}
        for (split, folder), number in itertools.product(output.folders.items(), numbers):
            path = filesystems.join(folder, record_folder.shard_name(number, output.num_shards))
            shards[split, number] = Shard(stack.enter_context(filesystems.create(path)), split, number, path)
        yield shards


def written(shards: Iterable[Shard], irregular: dict[str, int]) -> Written:
    """Returns the result of a task that has written shards."""
    statistics = [shard.statistics() for shard in shards]
    files = {one.path: one.counts["bytes"] for one in statistics}
    return Written(files=files, irregular=irregular, shards=statistics)
