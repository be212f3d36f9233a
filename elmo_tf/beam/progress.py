"""The progress of tasks, and the line that shows it: share done, speed, time left."""

import collections
import contextlib
import datetime
import threading
import time
from collections.abc import Iterator

from apache_beam.metrics import Metrics

from elmo_tf.beam import output_folder
from elmo_tf.files import staging, stores
from elmo_tf.files.progress import ProgressLine
from elmo_tf.records import record_folder

_WRITE_SECONDS = 0.5
_POLL_SECONDS = 0.5
_START_SECONDS = 10.0  # no estimate before: loading a model and the first batches are slow
_REMOTE_POLL_SECONDS = 20.0  # between two requests to a remote store
_FILE = "progress"
_COUNTED = ("bytes", "sentences", "tokens")


class TaskProgress:
    """Counts the progress of a task: in Beam's counters and, every half second, by a line in a local file.

    A folder in a store has no such file, because nothing can be appended to it.
    """

    def __init__(self, folder: output_folder.Folder, activity: str):
        self._path = folder.run_file(_FILE) if stores.is_local(folder.path) else None
        self._activity, self._amount = activity, [0, 0, 0]  # not written yet
        self._counters = [Metrics.counter(activity, name) for name in _COUNTED]
        self._written_at = time.monotonic()

    def add(self, *amount: int) -> None:
        """Adds bytes read, sentences and tokens."""
        for number, count in enumerate(amount):
            self._amount[number] += count
            self._counters[number].inc(count)
        if time.monotonic() - self._written_at > _WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Writes the amount now."""
        if self._path:
            # The task itself reports a full disk. Workers append short lines, which do not interleave.
            with contextlib.suppress(OSError), open(self._path, "a", opener=staging.no_link) as file:
                file.write(f"{self._activity} {' '.join(map(str, self._amount))}\n")
        self._amount, self._written_at = [0, 0, 0], time.monotonic()


@contextlib.contextmanager
def show_progress(folder: output_folder.Folder, size: int, num_shards: int) -> Iterator[None]:
    """Shows the progress of a job on stderr until the block ends.

    If the folder is in a store, the finished shards are counted: Flink reports Beam's counters only at the end.

    Args:
        folder: the output folder.
        size: bytes of text that each phase reads.
        num_shards: how many shards there can be.
    """
    line, stop = ProgressLine(at_once=False), threading.Event()
    is_local = stores.is_local(folder.path)
    describe = _amounts(folder, size) if is_local else _shards(folder, num_shards)

    def show() -> None:
        while not stop.wait(_POLL_SECONDS if is_local else _REMOTE_POLL_SECONDS):
            with contextlib.suppress(OSError):
                if (text := next(describe)) and line.due():
                    line.show(text)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        line.clear()


def _amounts(folder: output_folder.Folder, size: int) -> Iterator[str]:
    """Generator of status texts for the phase that reported last; each `next()` reads the new lines."""
    totals: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    started: dict[str, float] = {}
    position, activity = 0, ""
    while True:
        with contextlib.suppress(OSError), open(folder.run_file(_FILE), "rb") as file:
            file.seek(position)
            for line in file:
                # A killed worker may leave a damaged line.
                with contextlib.suppress(ValueError):
                    activity, *amount = line.decode().split()
                    totals[activity] = [sum(pair) for pair in zip(totals[activity], map(int, amount), strict=True)]
            position = file.tell()
        seconds = time.monotonic() - started.setdefault(activity, time.monotonic() - _WRITE_SECONDS)
        yield _describe(activity, totals[activity], size, seconds) if activity else ""


def _shards(folder: output_folder.Folder, count: int) -> Iterator[str]:
    first, start = None, time.monotonic()
    while True:
        names = filter(record_folder.is_record_file, stores.names(folder.path))
        done = sum(name.endswith(".tfrecord") for name in names)
        first = done if first is None else first
        left = _time_left(done - first, count - done, time.monotonic() - start)
        yield f"{done:,} of {count:,} shards  {left}" if done else ""


def _describe(activity: str, amount: list[int], size: int, seconds: float) -> str:
    """Returns a text: how much of `size` bytes is done, the speed in these `seconds`, the time left."""
    num_bytes, sentences, tokens = amount
    return (
        f"{activity} {min(num_bytes / max(size, 1), 1):.0%}  {sentences:,} sentences  {tokens:,} tokens  "
        f"{tokens / seconds:,.0f} tokens/s  {_time_left(num_bytes, size - num_bytes, seconds)}"
    )


def _time_left(done: int, remaining: int, seconds: float) -> str:
    if done <= 0 or seconds < _START_SECONDS:
        return "time left unknown"
    return f"{datetime.timedelta(seconds=round(max(remaining, 0) * seconds / done))} left"
