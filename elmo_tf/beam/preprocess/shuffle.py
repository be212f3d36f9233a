"""A global shuffle on disk: every record goes to a random bucket, then each bucket is shuffled in memory.

A task writes two files per split: its records in runs, each sorted by bucket, and the places of each bucket in them.
A shard consists of one or more buckets, each small enough for memory. The order depends only on the seed and on the
tasks, which is why they need a plan of the whole text.
"""

import collections
import contextlib
import itertools
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from elmo_tf.beam.preprocess import shards
from elmo_tf.beam.running import do_once, task_progress
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import corpora, filesystems

BUCKET_BYTES = 64 << 20  # of records, roughly, that are shuffled in memory at a time
_RUN_BYTES = 32 << 20  # of records that a task keeps in memory before it writes them
_FRAME_BYTES = 16  # of a TFRecord, in addition to the data


class GatherTask(NamedTuple):
    """A shard to gather in each split."""

    number: int
    size: int  # bytes


class _Scattered:
    """The file of a task and split, while it is written."""

    def __init__(self, file: BinaryIO, num_buckets: int, random: np.random.Generator):
        self._file, self._num_buckets, self._random = file, num_buckets, random
        self._records: list[bytes] = []
        self._buckets: list[np.ndarray] = []
        self._waiting = 0  # bytes of records in memory
        self._counts = np.zeros((num_buckets, len(shards.COUNTED)), np.int64)
        self.size = 0  # bytes in the file
        self._places: list[np.ndarray] = []  # for each run: begin and end of every bucket in the file

    def write(self, encoded: shards.Encoded) -> None:
        """Adds records, each to a random bucket."""
        buckets = self._random.integers(self._num_buckets, size=len(encoded.records))
        np.add.at(self._counts, buckets, encoded.counts)
        self._records.extend(encoded.records)
        self._buckets.append(buckets)
        self._waiting += sum(map(len, encoded.records))
        if self._waiting >= _RUN_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the records in memory as a run."""
        if not self._records:
            return
        buckets = np.concatenate(self._buckets)
        lengths = np.bincount(buckets, [len(record) for record in self._records], self._num_buckets).astype(np.int64)
        ends = self.size + np.cumsum(lengths)
        self._places.append(np.stack([ends - lengths, ends], 1))
        self._file.writelines(self._records[index] for index in np.argsort(buckets, kind="stable").tolist())
        self.size += self._waiting
        self._records, self._buckets, self._waiting = [], [], 0

    def index(self) -> np.ndarray:
        """Returns an int64 row per bucket: its counts, then its begin and end in each run."""
        return np.concatenate([self._counts, *self._places], 1)


class Scatter(shards.TextStep):
    """`corpora.Task` -> in the journal, a file of runs and an index of the places of each bucket in them."""

    phase = "scatter"

    def __init__(self, output: shards.Output, num_buckets: int):
        super().__init__(output)
        self._num_buckets = num_buckets

    def do(self, task: corpora.Task, progress: task_progress.TaskProgress) -> Result:
        irregular = collections.Counter()
        with contextlib.ExitStack() as stack:
            written = {}
            for index, split in enumerate(self._output.folders):
                file = stack.enter_context(filesystems.create(_path(self._journal, task.number, split, "run")))
                random = np.random.default_rng([self._output.settings.seed, task.number, index])
                written[split] = _Scattered(file, self._num_buckets, random)
            for encoded in self.convert(task, progress, irregular):
                for split, scattered in written.items():
                    scattered.write(encoded[split])
            sizes = {}
            for split, scattered in written.items():
                scattered.flush()
                sizes[_path(self._journal, task.number, split, "run")] = scattered.size
                path, index = _path(self._journal, task.number, split, "index"), scattered.index()
                filesystems.write(path, index.tobytes())
                sizes[path] = index.nbytes
        return Result(files=sizes, irregular=irregular)


class Gather(do_once.DoOnce):
    """`GatherTask` -> the shards of that number, from their buckets."""

    phase = "gather"
    kind = shards.Written

    def __init__(self, output: shards.Output, num_buckets: int, num_tasks: int):
        """`num_tasks` is the number of tasks of `Scatter`."""
        super().__init__(output.journal)
        self._output, self._num_buckets, self._num_tasks = output, num_buckets, num_tasks

    def setup(self) -> None:
        self._scattered = self._journal.results(Scatter.phase, self._num_tasks, Result)

    def do(self, task: GatherTask, progress: task_progress.TaskProgress) -> shards.Written:
        per_shard = self._num_buckets // self._output.num_shards
        with shards.open_shards(self._output, [task.number]) as opened:
            for number, split in enumerate(self._output.folders):
                for bucket in range(task.number * per_shard, (task.number + 1) * per_shard):
                    found, counts = self._bucket(split, bucket)
                    random = np.random.default_rng([self._output.settings.seed, bucket, number])
                    shuffled = [found[index] for index in random.permutation(len(found))]
                    opened[split, task.number].write(shards.Encoded(shuffled, counts[None]))
                    amount = (counts[shards.COUNTED.index(name)] for name in ("bytes", "sentences", "tokens"))
                    progress.add(*map(int, amount))
            return shards.written(opened.values(), {})

    def _bucket(self, split: str, bucket: int) -> tuple[list[bytes], np.ndarray]:
        """Returns a bucket's records, in the order of the tasks, and the sums of their counts."""
        counts = np.zeros(len(shards.COUNTED), np.int64)

        def read(number: int) -> tuple[np.ndarray, list[bytes]]:
            path, index = (_path(self._journal, number, split, ending) for ending in ("run", "index"))
            size = self._scattered[number].files[index] // self._num_buckets
            row = np.frombuffer(filesystems.read_range(index, bucket * size, (bucket + 1) * size), np.int64)
            runs = row[len(counts) :].reshape(-1, 2).tolist()
            return row[: len(counts)], [filesystems.read_range(path, *run) for run in runs if run[0] < run[1]]

        is_near = filesystems.is_local(self._journal.folder)
        found = []
        for added, segments in (map if is_near else filesystems.at_once)(read, range(self._num_tasks)):
            counts += added
            found.extend(itertools.chain.from_iterable(map(_frames, segments)))
        return found, counts


def gather_tasks(results: list[Result], num_shards: int) -> do_once.Tasks:
    """Returns the tasks of `Gather`, given the results of `Scatter`."""
    size = sum(size for result in results for path, size in result.files.items() if path.endswith(".run"))
    each = size // num_shards
    return do_once.Tasks(lambda: (GatherTask(number, each) for number in range(num_shards)), num_shards, size)


def _path(journal: Journal, number: int, split: str, ending: str) -> str:
    return journal.path(f"{Scatter.phase}-{number:05d}-{split}.{ending}")


def _frames(segment: bytes) -> Iterator[bytes]:
    """Yields the TFRecords in `segment`, with their frames."""
    start = 0
    while start < len(segment):
        end = start + _FRAME_BYTES + int.from_bytes(segment[start : start + 8], "little")
        yield segment[start:end]
        start = end
