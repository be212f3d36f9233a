"""Where the records of each bucket of a shuffle are: one file for all tasks, so that a bucket asks for it once.

FOLDER/_unfinished/places-SPLIT  for each bucket a row, int64: its counts; then task, begin and end of each of its runs
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from elmo_tf.pipelines.running import journal
from elmo_tf.pipelines.text import filesystems

_MOST_BYTES = 64 << 20  # of rows in memory at a time
_VALUE = np.dtype("<i8")


class Index(NamedTuple):
    """What a task has written about a split: for each bucket a row, int64: counts; then begin and end in each run."""

    path: str
    size: int  # bytes


class Places(NamedTuple):
    """The file of a split, and how to read it."""

    path: str
    num_counts: int  # columns of counts
    length: int  # columns of a row

    def read(self, bucket: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the counts of a bucket, and its places `(places, 3)`: number of the task, begin, end."""
        size = self.length * _VALUE.itemsize
        row = np.frombuffer(filesystems.read_range(self.path, bucket * size, (bucket + 1) * size), _VALUE)
        places = row[self.num_counts :].reshape(-1, 3)
        return row[: self.num_counts], places[places[:, 1] < places[:, 2]]


def write(notes: journal.Journal, split: str, indexes: Sequence[Index], num_buckets: int, num_counts: int) -> Places:
    """Writes the file of a split.

    Args:
        notes: where.
        split: its name.
        indexes: of all tasks, in order.
        num_buckets: rows of each.
        num_counts: columns of counts of each.

    Raises:
        filesystems.ReadError: if an index is too short.
    """
    columns = [index.size // num_buckets // _VALUE.itemsize for index in indexes]
    length = num_counts + sum((width - num_counts) // 2 * 3 for width in columns)
    places = Places(notes.path(f"places-{split}"), num_counts, length)
    at_once = max(1, _MOST_BYTES // (length * _VALUE.itemsize))
    with filesystems.create(places.path) as file:
        for first in range(0, num_buckets, at_once):
            file.write(_rows(indexes, columns, range(first, min(first + at_once, num_buckets)), places).tobytes())
    return places


def _rows(indexes: Sequence[Index], columns: list[int], buckets: range, places: Places) -> np.ndarray:
    """Returns the rows of consecutive buckets."""

    def read(number: int) -> Any:
        width = columns[number] * _VALUE.itemsize
        path = indexes[number].path
        content = filesystems.read_range(path, buckets.start * width, buckets.stop * width)
        return np.frombuffer(content, _VALUE).reshape(len(buckets), -1)

    rows = np.zeros((len(buckets), places.length), _VALUE)
    begin = places.num_counts
    for number, index in enumerate(filesystems.at_once(read, range(len(indexes)))):
        rows[:, : places.num_counts] += index[:, : places.num_counts]
        runs = index[:, places.num_counts :].reshape(len(buckets), -1, 2)
        end = begin + 3 * runs.shape[1]
        rows[:, begin:end] = np.insert(runs, 0, number, 2).reshape(len(buckets), -1)
        begin = end
    return rows
