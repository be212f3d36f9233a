"""A global shuffle on disk: every record goes to a random bucket, then each bucket is shuffled in memory.

A task writes two files per split: its records in runs, each sorted by bucket, and the index: the byte ranges of each
bucket in these runs. A shard consists of one or more buckets, each small enough for memory. The order depends only on
the seed and on the tasks.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from elmo_tf.beam import failures, output_folder
from elmo_tf.beam.preprocess import counts, encoder, shards
from elmo_tf.beam.progress import TaskProgress
from elmo_tf.corpus import corpora
from elmo_tf.files import stores

BUCKET_BYTES = 64 << 20  # of records, roughly, that are shuffled in memory at a time
_RUN_BYTES = 32 << 20  # of records that a task keeps in memory before it writes them
_FRAME_BYTES = 16  # of a TFRecord, in addition to the data


class Scattered(NamedTuple):
    """What a task of `Scatter` has written."""

    irregular: dict[str, int]  # how often each rule for irregular text applied
    row_bytes: dict[str, int]  # of a bucket's row in its index, by split


class _Runs:
    """The file of a task and split, from its first record on: Beam cannot write empty files to S3."""

    def __init__(self, create: Callable[[], BinaryIO], num_buckets: int, random: np.random.Generator):
        self._create, self._num_buckets, self._random = create, num_buckets, random
        self._file: BinaryIO | None = None
        self._records: list[bytes] = []
        self._buckets: list[np.ndarray] = []
        self._buffered_bytes = 0  # of records in memory
        self._counts = np.zeros((num_buckets, len(encoder.COUNTED)), np.int64)
        self._size = 0  # bytes in the file
        self._bucket_ranges: list[np.ndarray] = []  # for each run: begin and end of every bucket in the file

    def write(self, encoded: encoder.Encoded) -> None:
        """Adds records, each to a random bucket."""
        buckets = self._random.integers(self._num_buckets, size=len(encoded.records))
        np.add.at(self._counts, buckets, encoded.counts)
        self._records.extend(encoded.records)
        self._buckets.append(buckets)
        self._buffered_bytes += sum(map(len, encoded.records))
        if self._buffered_bytes >= _RUN_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Writes the records in memory as a run."""
        if not self._records:
            return
        buckets = np.concatenate(self._buckets)
        lengths = np.bincount(buckets, [len(record) for record in self._records], self._num_buckets).astype(np.int64)
        ends = self._size + np.cumsum(lengths)
        self._bucket_ranges.append(np.stack([ends - lengths, ends], 1))
        self._file = self._file or self._create()
        self._file.writelines(self._records[index] for index in np.argsort(buckets, kind="stable").tolist())
        self._size += self._buffered_bytes
        self._records, self._buckets, self._buffered_bytes = [], [], 0

    def finish(self) -> np.ndarray:
        """Writes the rest; returns an int64 row per bucket: its counts, then its begin and end in each run."""
        self._flush()
        return np.concatenate([self._counts, *self._bucket_ranges], 1)


@dataclasses.dataclass(eq=False)
class Scatter(shards.ConvertTextFn):
    """`corpora.Task` -> its number and `Scattered`: for each split, a file of runs and an index of their buckets."""

    num_buckets: int

    def process_task(self, task: corpora.Task, words: counts.Counted) -> Iterator[tuple[int, Scattered]]:
        if not words.content:
            return
        irregular, row_bytes = collections.Counter[str](), {}
        with contextlib.ExitStack() as stack:
            runs = {}
            for index_of_split, split in enumerate(self.output.folders):
                file = stores.create(_path(self.folder, task.number, split, "run"))
                random = np.random.default_rng([self.output.settings.seed, task.number, index_of_split])
                runs[split] = _Runs(functools.partial(stack.enter_context, file), self.num_buckets, random)
            for encoded in self.convert(task, words, irregular):
                for split, written in runs.items():
                    written.write(encoded[split])
            for split, written in runs.items():
                index = written.finish()
                stores.write(_path(self.folder, task.number, split, "index"), index.tobytes())
                row_bytes[split] = index[0].nbytes
        yield task.number, Scattered(dict(irregular), row_bytes)


@dataclasses.dataclass(eq=False)
class Gather(failures.TaskFn):
    """A shard's number -> that and `shards.TaskResult`: the shards of each split, from their buckets."""

    output: shards.Output
    num_buckets: int
    num_tasks: int  # of `Scatter`; if fewer have succeeded, nothing is written

    phase = 2

    def process_task(
        self, number: int, scattered: list[tuple[int, Scattered]]
    ) -> Iterator[tuple[int, shards.TaskResult]]:
        by_task = dict(scattered)
        if len(by_task) < self.num_tasks:
            return
        rows = [by_task[task].row_bytes for task in range(self.num_tasks)]
        per_shard = self.num_buckets // self.output.num_shards
        progress = TaskProgress(self.folder, "shuffling")
        with shards.open_shards(self.output, [number]) as opened:
            for index_of_split, split in enumerate(self.output.folders):
                for bucket in range(number * per_shard, (number + 1) * per_shard):
                    records, totals = self._bucket(split, bucket, [row[split] for row in rows])
                    random = np.random.default_rng([self.output.settings.seed, bucket, index_of_split])
                    shuffled = [records[index] for index in random.permutation(len(records))]
                    opened[split, number].write(encoder.Encoded(shuffled, totals[None]))
                    counted = dict(zip(encoder.COUNTED, totals.tolist(), strict=True))
                    # Half the bytes: roughly those of the text.
                    progress.add(counted["bytes"] // 2, counted["sentences"], counted["tokens"])
        progress.write()
        yield number, shards.written(opened.values(), {})

    def _bucket(self, split: str, bucket: int, row_bytes: list[int]) -> tuple[list[bytes], np.ndarray]:
        """Returns a bucket's records, in the order of the tasks, and the sums of their counts."""
        totals = np.zeros(len(encoder.COUNTED), np.int64)

        def read(task: int) -> tuple[np.ndarray, list[bytes]]:
            path, index = (_path(self.folder, task, split, ending) for ending in ("run", "index"))
            size = row_bytes[task]
            row = np.frombuffer(stores.read_range(index, bucket * size, (bucket + 1) * size), np.int64)
            runs = row[len(totals) :].reshape(-1, 2).tolist()
            return row[: len(totals)], [stores.read_range(path, *run) for run in runs if run[0] < run[1]]

        is_local = stores.is_local(self.folder.path)
        records: list[bytes] = []
        for added, segments in (map if is_local else stores.map_concurrently)(read, range(self.num_tasks)):
            totals += added
            records.extend(itertools.chain.from_iterable(map(_frames, segments)))
        return records, totals


def _path(folder: output_folder.Folder, task: int, split: str, ending: str) -> str:
    return folder.temporary_file(f"scattered-{task:05d}-{split}.{ending}")


def _frames(segment: bytes) -> Iterator[bytes]:
    """Yields the TFRecords in `segment`, with their frames."""
    start = 0
    while start < len(segment):
        end = start + _FRAME_BYTES + int.from_bytes(segment[start : start + 8], "little")
        yield segment[start:end]
        start = end
