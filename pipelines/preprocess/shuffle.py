"""A global shuffle on disk: every record goes to a random bucket, then each bucket is shuffled in memory.

A task writes one file per split. It consists of runs, each sorted by bucket. A shard consists of one or more buckets,
each small enough for memory. The order depends only on the seed and the plan of the tasks.
"""

import collections
import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from elmo_tf.files.json_file import MapOf, Object, Whole
from elmo_tf.pipelines.preprocess import bucket_places, shards
from elmo_tf.pipelines.running import do_once, journal, task_progress
from elmo_tf.pipelines.text import corpora, filesystems, sentences

BUCKET_BYTES = 64 << 20  # of records, roughly, that are shuffled in memory at a time
_RUN_BYTES = 32 << 20  # of records that a task keeps in memory before it writes them
_FRAME_BYTES = 16  # of a TFRecord, in addition to the data


class GatherTask(NamedTuple):
    """A shard to gather, of either split."""

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


class Scatter(do_once.DoOnce):
    """`corpora.Task` -> in the journal, a file of runs and an index of the places of each bucket in them."""

    phase = "scatter"
    schema = Object({**do_once.FILES.required, "irregular": MapOf(Whole())})

    def __init__(self, folders: dict[str, str], num_buckets: int, settings: sentences.Settings):
        super().__init__(folders[sentences.TRAIN])
        self._folders, self._num_buckets, self._settings = folders, num_buckets, settings

    def setup(self) -> None:
        self._converter = shards.Converter(self._folders[sentences.TRAIN], self._settings)

    def do(self, task: corpora.Task, progress: task_progress.TaskProgress) -> dict[str, Any]:
        irregular = collections.Counter()
        with contextlib.ExitStack() as stack:
            written = {}
            for index, split in enumerate(self._folders):
                file = stack.enter_context(filesystems.create(_path(self._journal, task.number, split, "run")))
                random = np.random.default_rng([self._settings.seed, task.number, index])
                written[split] = _Scattered(file, self._num_buckets, random)
            for encoded in self._converter.convert(task, progress, irregular):
                for split, scattered in written.items():
                    scattered.write(encoded[split])
            for scattered in written.values():
                scattered.flush()
            sizes = {}
            for split, scattered in written.items():
                index = scattered.index()
                filesystems.write(_path(self._journal, task.number, split, "index"), index.tobytes())
                sizes[_path(self._journal, task.number, split, "index")] = index.nbytes
                sizes[_path(self._journal, task.number, split, "run")] = scattered.size
            return {"irregular": irregular, "files": sizes}


class Gather(do_once.DoOnce):
    """`GatherTask` -> the shards of that number, from their buckets. The result holds the shards' statistics."""

    phase = "gather"
    schema = shards.RESULT

    def __init__(
        self,
        folders: dict[str, str],
        num_shards: int,
        num_buckets: int,
        places: dict[str, bucket_places.Places],  # by split
        seed: int,
    ):
        super().__init__(folders[sentences.TRAIN])
        self._folders, self._num_shards, self._num_buckets = folders, num_shards, num_buckets
        self._places, self._seed = places, seed

    def do(self, task: GatherTask, progress: task_progress.TaskProgress) -> dict[str, Any]:
        per_shard = self._num_buckets // self._num_shards
        with shards.open_shards(self._folders, [task.number], self._num_shards) as opened:
            for number, split in enumerate(self._folders):
                for bucket in range(task.number * per_shard, (task.number + 1) * per_shard):
                    found, counts = self._bucket(split, bucket)
                    random = np.random.default_rng([self._seed, bucket, number])
                    order = random.permutation(len(found))
                    shuffled = [found[index] for index in order]
                    opened[split, task.number].write(shards.Encoded(shuffled, counts[None]))
                    amount = (counts[shards.COUNTED.index(name)] for name in ("bytes", "sentences", "tokens"))
                    progress.add(*map(int, amount))
            statistics = [shard.statistics() for shard in opened.values()]
        return {"shards": statistics, "files": {shard["path"]: shard["bytes"] for shard in statistics}}

    def _bucket(self, split: str, bucket: int) -> tuple[list[bytes], np.ndarray]:
        """Returns a bucket's records, in the order of the tasks, and the sums of their counts."""
        counts, places = self._places[split].read(bucket)

        def read(place: list[int]) -> bytes:
            number, start, end = place
            return filesystems.read_range(_path(self._journal, number, split, "run"), start, end)

        is_near = filesystems.is_local(self._journal.folder)
        segments = (map if is_near else filesystems.at_once)(read, places.tolist())
        return list(itertools.chain.from_iterable(map(_frames, segments))), counts


def write_places(
    notes: journal.Journal, splits: Iterable[str], results: list[dict[str, Any]], num_buckets: int
) -> dict[str, bucket_places.Places]:
    """Writes where the records of each bucket are, given the results of `Scatter`; returns the places of each split."""
    found = {}
    for split in splits:
        paths = [_path(notes, number, split, "index") for number in range(len(results))]
        indexes = [
            bucket_places.Index(path, result["files"][path]) for path, result in zip(paths, results, strict=True)
        ]
        found[split] = bucket_places.write(notes, split, indexes, num_buckets, len(shards.COUNTED))
    return found


def gather_tasks(results: list[dict[str, Any]], num_shards: int) -> list[GatherTask]:
    """Returns the tasks of `Gather`, given the results of `Scatter`."""
    size = sum(size for result in results for path, size in result["files"].items() if path.endswith(".run"))
    return [GatherTask(number, size // num_shards) for number in range(num_shards)]


def _path(notes: journal.Journal, number: int, split: str, ending: str) -> str:
    return notes.path(f"{Scatter.phase}-{number:05d}-{split}.{ending}")


def _frames(segment: bytes) -> Iterator[bytes]:
    """Yields the TFRecords in `segment`, with their frames."""
    start = 0
    while start < len(segment):
        end = start + _FRAME_BYTES + int.from_bytes(segment[start : start + 8], "little")
        yield segment[start:end]
        start = end
