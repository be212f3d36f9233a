"""Records to shards, as Beam steps, and the end of a folder: `vocab.txt`, `info.json` and the marker.

A worker writes whole shards itself: the local runner holds everything that passes through Beam's shuffle or TFRecord
sink in memory, and both take several times as long.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from elmo_tf.beam import failures, output_folder, report
from elmo_tf.beam.preprocess import counts, encoder
from elmo_tf.beam.progress import TaskProgress
from elmo_tf.corpus import corpora, sentences
from elmo_tf.files import stores
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary


class Statistics(NamedTuple):
    """The contents of a shard."""

    split: str
    number: int
    name: str  # of its file
    counts: dict[str, int]  # by encoder.COUNTED
    sha256: str


class TaskResult(NamedTuple):
    """Result of a task that writes shards."""

    shards: list[Statistics]
    irregular: report.Irregular


class Output(NamedTuple):
    """The records to make."""

    folders: dict[str, output_folder.Folder]  # of each split
    settings: sentences.Settings
    num_shards: int
    min_count: int

    @property
    def folder(self) -> output_folder.Folder:
        """The folder of the training split, which also has the files that both splits share."""
        return self.folders[sentences.TRAIN]


class Shard:
    """One TFRecord file, created with its first record, and its statistics."""

    def __init__(self, create: Callable[[], BinaryIO], split: str, number: int, name: str):
        self._create, self._split, self._number, self._name = create, split, number, name
        self._file: BinaryIO | None = None
        self._checksum = hashlib.sha256()
        self._totals = collections.Counter[str]()

    def write(self, encoded: encoder.Encoded) -> None:
        """Appends records."""
        if not encoded.records:
            return
        self._file = self._file or self._create()
        content = b"".join(encoded.records)
        self._file.write(content)
        self._checksum.update(content)
        self._totals.update(encoded.counts)

    def statistics(self) -> Statistics | None:
        """Returns the totals so far; None if nothing is written."""
        if self._file is None:
            return None
        return Statistics(self._split, self._number, self._name, dict(self._totals), self._checksum.hexdigest())


@functools.lru_cache(maxsize=1)
def encoder_of(content: bytes) -> encoder.Encoder:
    """Returns the encoder of a vocabulary's file; cached, so a process decodes it once."""
    return encoder.Encoder(vocabulary.from_bytes(content, record_folder.VOCABULARY_FILE))


@dataclasses.dataclass(eq=False)
class WriteTask(failures.TaskFn):
    """`corpora.Task` -> its number and `TaskResult`; writes its shards in the order of the text.

    The side input is `counts.Counted`.
    """

    output: Output

    def setup(self) -> None:
        self._reader = sentences.Reader(self.output.settings)

    def process_task(self, task: corpora.Task, words: counts.Counted) -> Iterator[tuple[int, TaskResult]]:
        counts.check(words, self.output.min_count)
        encode, progress = encoder_of(words.content).encode, TaskProgress(self.folder, "writing")
        irregular: report.Irregular = collections.defaultdict(collections.Counter)
        numbers = itertools.cycle(task.shards)
        with open_shards(self.output, task.shards) as shards:
            for batch, number in zip(self._reader.read(task), numbers, strict=False):
                parts = self.output.settings.split(batch.sentences)
                encoded = {split: encode(parts[split]) for split in self.output.folders}
                for split, records in encoded.items():
                    shards[split, number].write(records)
                irregular[batch.source].update(batch.irregular)
                amounts = (sum(part.counts[name] for part in encoded.values()) for name in ("sentences", "tokens"))
                progress.add(batch.size, *amounts)
            progress.write()
        yield task.number, written(shards.values(), irregular)


@contextlib.contextmanager
def open_shards(output: Output, numbers: Iterable[int]) -> Iterator[dict[tuple[str, int], Shard]]:
    """Yields shards to write, by split and number. The files appear when the block ends without an exception."""
    with contextlib.ExitStack() as stack:
        shards = {}
        for (split, folder), number in itertools.product(output.folders.items(), numbers):
            name = record_folder.shard_name(number, output.num_shards)
            create = functools.partial(stack.enter_context, stores.create(folder.file(name)))
            shards[split, number] = Shard(create, split, number, name)
        yield shards


def written(shards: Iterable[Shard], irregular: report.Irregular) -> TaskResult:
    """Returns the result of a task: the statistics of its nonempty shards."""
    return TaskResult(list(filter(None, (shard.statistics() for shard in shards))), dict(irregular))


def info_of_split(split: str, tasks: Iterable[TaskResult], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `info.json` of a split, given the tasks' results and the part that both splits share."""
    split_shards = [shard for task in tasks for shard in task.shards if shard.split == split]
    split_shards.sort(key=lambda shard: shard.number)
    described = [
        {"name": shard.name}
        | {name: shard.counts[name] for name in ("sentences", "tokens", "bytes")}
        | {"sha256": shard.sha256}
        for shard in split_shards
    ]
    totals = {name: sum(shard.counts[name] for shard in split_shards) for name in encoder.COUNTED}
    return {"format_version": record_folder.FORMAT_VERSION, "split": split, **totals, **shared, "shards": described}


def final_files(words: bytes, info: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the files that finish a folder, by name, in the order in which they are written."""
    return {
        record_folder.VOCABULARY_FILE: words,
        record_folder.INFO_FILE: report.info_file(info),
        record_folder.MARKER_FILE: output_folder.MARKER,
    }
