"""The progress of tasks, and the line that shows it: share done, speed, time left."""

import contextlib
import datetime
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from apache_beam.metrics import Metrics

from elmo_tf.beam.running.journal import PROGRESS_ENDING, Journal
from elmo_tf.beam.text import filesystems
from elmo_tf.files import staging
from elmo_tf.files.progress import ProgressLine

_WRITE_SECONDS = 0.5
_POLL_SECONDS = 0.5
_START_SECONDS = 10.0  # no estimate before: loading a model and the first batches are slow
_FAR_SECONDS = 20.0  # between two requests to a remote store


class Amount(NamedTuple):
    """How much is done."""

    bytes: int = 0
    sentences: int = 0
    tokens: int = 0
    reused_bytes: int = 0  # done by an earlier run

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(*map(sum, zip(self, other, strict=True)))


class TaskProgress:
    """Counts the progress of a task: in Beam's counters and, every half second, by a line in a local file.

    A remote journal has no such file, because nothing can be appended to a file in a store.
    """

    def __init__(self, journal: Journal, phase: str):
        self._path = _path(journal, phase) if filesystems.is_local(journal.folder) else None
        self._amount = Amount()  # not written yet
        self._counters = [Metrics.counter(phase, name) for name in Amount._fields]
        self._written = time.monotonic()

    def add(self, *amount: int) -> None:
        """Adds to the task's `Amount`."""
        self._amount += Amount(*amount)
        for counter, count in zip(self._counters, amount, strict=False):
            counter.inc(count)
        if time.monotonic() - self._written > _WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Writes the amount now."""
        if self._path:
            # The task itself reports a full disk. Workers append short lines, which do not mix.
            with contextlib.suppress(OSError), open(self._path, "a", opener=staging.no_link) as file:
                file.write(" ".join(map(str, self._amount)) + "\n")
        self._amount, self._written = Amount(), time.monotonic()


def amounts(journal: Journal, phase: str) -> Iterator[Amount]:
    """Yields what the tasks of a phase have done by now, as often as it is asked."""
    read, total = 0, Amount()
    while True:
        with contextlib.suppress(OSError), open(_path(journal, phase), "rb") as file:
            file.seek(read)
            for line in file:
                # A line of a worker that was killed may be damaged.
                with contextlib.suppress(ValueError, TypeError):
                    total += Amount(*map(int, line.split()))
            read = file.tell()
        yield total


def _path(journal: Journal, phase: str) -> str:
    return journal.path(f"{phase}{PROGRESS_ENDING}")


@contextlib.contextmanager
def watched(doing: str, journal: Journal, phase: str, num_tasks: int, size: int) -> Iterator[None]:
    """Shows the progress of a phase on stderr until the block ends, under the name `doing`.

    If the journal is in a remote store, the number of results is shown: Flink reports Beam's counters only when a job
    has ended.
    """
    line, stop, start = ProgressLine(at_once=False), threading.Event(), time.monotonic()
    is_near = filesystems.is_local(journal.folder)
    done_amounts = amounts(journal, phase)
    reused = 0 if is_near else len(journal.done_paths(phase))

    def show() -> None:
        while not stop.wait(_POLL_SECONDS if is_near else _FAR_SECONDS):
            seconds = time.monotonic() - start
            with contextlib.suppress(OSError):
                if not line.due():
                    continue
                if is_near:
                    line.show(f"{doing} {describe(next(done_amounts), size, seconds)}")
                # Tasks that only count leave no results.
                elif done := len(journal.done_paths(phase)):
                    line.show(f"{doing} {describe_tasks(done, reused, num_tasks, seconds)}")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        line.clear()


def describe(amount: Amount, size: int, seconds: float) -> str:
    """Returns a text: how much of `size` bytes is done, the speed in these `seconds`, the time left."""
    left = _time_left(amount.bytes - amount.reused_bytes, size - amount.bytes, seconds)
    return (
        f"{min(amount.bytes / max(size, 1), 1):.0%}  {amount.sentences:,} sentences  {amount.tokens:,} tokens  "
        f"{amount.tokens / seconds:,.0f} tokens/s  {left}"
    )


def describe_tasks(done: int, reused: int, count: int, seconds: float) -> str:
    """Returns a text: how many of `count` tasks are done, `reused` of them by an earlier run, and the time left."""
    return f"{done:,} of {count:,} tasks  {_time_left(done - reused, count - done, seconds)}"


def _time_left(done: int, remaining: int, seconds: float) -> str:
    if done <= 0 or seconds < _START_SECONDS:
        return "time left unknown"
    return f"{datetime.timedelta(seconds=round(max(remaining, 0) * seconds / done))} left"
