"""A global shuffle on disk: every record is scattered to a random bucket, then each bucket is shuffled in memory.

A task writes one file a split, of runs; in a run the records stand by bucket. A shard is made of one bucket or more,
each small enough for memory. What goes where depends on the seed and on the plan of the tasks alone.
"""

import collections
import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from pipelines import corpora, files, journal, sentences, shards, tasks

BUCKET_BYTES = 64 << 20  # of records, roughly: what is shuffled in memory at a time
_RUN_BYTES = 32 << 20  # of records that a task keeps in memory before it writes them, by bucket
_FRAME_BYTES = 16  # of a TFRecord, beside the data


class GatherTask(NamedTuple):
    """A shard to gather, of either split."""

    number: int
    size: int  # bytes


class _Scattered:
    """The file of a task and split while it is written."""

    def __init__(self, file: BinaryIO, num_buckets: int, random: np.random.Generator):
        self._file, self._num_buckets, self._random = file, num_buckets, random
        self._records: list[bytes] = []
        self._buckets: list[np.ndarray] = []
        self._size = 0
        self.counts = np.zeros((num_buckets, len(shards.COUNTED)), np.int64)
        self.runs: list[list[int]] = []  # for each the places in the file at which its buckets begin, and its end

    def write(self, encoded: shards.Encoded) -> None:
        """Takes records, each for a random bucket."""
        buckets = self._random.integers(self._num_buckets, size=len(encoded.records))
        np.add.at(self.counts, buckets, encoded.counts)
        self._records.extend(encoded.records)
        self._buckets.append(buckets)
        self._size += sum(map(len, encoded.records))
        if self._size >= _RUN_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes a run of what is in memory."""
        if not self._records:
            return
        buckets = np.concatenate(self._buckets)
        lengths = np.array([len(record) for record in self._records])
        start = self.runs[-1][-1] if self.runs else 0
        ends = np.cumsum(np.bincount(buckets, lengths, self._num_buckets)).astype(np.int64) + start
        self._file.writelines(self._records[index] for index in np.argsort(buckets, kind="stable").tolist())
        self.runs.append([start, *ends.tolist()])
        self._records, self._buckets, self._size = [], [], 0


class Scatter(tasks.DoOnce):
    """`corpora.Task` -> files of runs among the notes. The result tells where in them each bucket is."""

    phase = "scatter"

    def __init__(self, folders: dict[str, str], num_buckets: int, settings: sentences.Settings):
        super().__init__(folders[sentences.TRAIN])
        self._folders, self._num_buckets, self._settings = folders, num_buckets, settings

    def setup(self) -> None:
        self._converter = shards.Converter(self._folders[sentences.TRAIN], self._settings)

    def do(self, task: corpora.Task, beat: journal.Beat) -> dict[str, Any]:
        irregular = collections.Counter()
        with contextlib.ExitStack() as stack:
            written = {}
            for index, split in enumerate(self._folders):
                file = stack.enter_context(files.create(_path(self._journal, task.number, split)))
                random = np.random.default_rng([self._settings.seed, task.number, index])
                written[split] = _Scattered(file, self._num_buckets, random)
            for encoded in self._converter.convert(task, beat, irregular):
                for split, scattered in written.items():
                    scattered.write(encoded[split])
            for scattered in written.values():
                scattered.flush()
        return {
            "irregular": irregular,
            "runs": {split: scattered.runs for split, scattered in written.items()},
            "counts": {split: scattered.counts.tolist() for split, scattered in written.items()},
            "files": {
                _path(self._journal, task.number, split): scattered.runs[-1][-1] if scattered.runs else 0
                for split, scattered in written.items()
            },
        }


class Gather(tasks.DoOnce):
    """`GatherTask` -> the shards of that number, made of their buckets. The result holds the shards' statistics."""

    phase = "gather"

    def __init__(self, folders: dict[str, str], num_shards: int, num_buckets: int, num_scattered: int, seed: int):
        super().__init__(folders[sentences.TRAIN])
        self._folders, self._num_shards, self._num_buckets = folders, num_shards, num_buckets
        self._num_scattered, self._seed = num_scattered, seed

    def setup(self) -> None:
        numbers = range(self._num_scattered)
        self._scattered = [self._journal.result(Scatter.phase, number) for number in numbers]

    def do(self, task: GatherTask, beat: journal.Beat) -> dict[str, Any]:
        per_shard = self._num_buckets // self._num_shards
        with shards.open_shards(self._folders, [task.number], self._num_shards) as opened:
            for index, split in enumerate(self._folders):
                for bucket in range(task.number * per_shard, (task.number + 1) * per_shard):
                    records = [record for segment in self._segments(split, bucket) for record in _frames(segment)]
                    order = np.random.default_rng([self._seed, bucket, index]).permutation(len(records))
                    counts = np.sum([result["counts"][split][bucket] for result in self._scattered], axis=0)
                    shuffled = shards.Encoded([records[number] for number in order], counts[None])
                    opened[split, task.number].write(shuffled)
                    beat.add(*(int(counts[shards.COUNTED.index(name)]) for name in ("bytes", "sentences", "tokens")))
            statistics = [shard.statistics() for shard in opened.values()]
        return {"shards": statistics, "files": {shard["path"]: shard["bytes"] for shard in statistics}}

    def _segments(self, split: str, bucket: int) -> Iterator[bytes]:
        """Yields the parts of the scattered files that hold a bucket, in the order of the tasks."""
        for number, result in enumerate(self._scattered):
            places = [(run[bucket], run[bucket + 1]) for run in result["runs"][split] if run[bucket + 1] > run[bucket]]
            if places:
                with files.open_file(_path(self._journal, number, split)) as file:
                    for start, end in places:
                        file.seek(start)
                        yield file.read(end - start)


def gather_tasks(results: list[dict[str, Any]], num_shards: int) -> list[GatherTask]:
    """Returns the tasks of `Gather`, given the results of `Scatter`."""
    size = sum(size for result in results for size in result["files"].values())
    return [GatherTask(number, size // num_shards) for number in range(num_shards)]


def _path(notes: journal.Journal, number: int, split: str) -> str:
    return notes.path(f"{Scatter.phase}-{number:05d}-{split}.run")


def _frames(segment: bytes) -> Iterator[bytes]:
    """Yields the TFRecords that stand end to end in `segment`, with their frames."""
    start = 0
    while start < len(segment):
        end = start + _FRAME_BYTES + int.from_bytes(segment[start : start + 8], "little")
        yield segment[start:end]
        start = end
