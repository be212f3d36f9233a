"""The progress of tasks, which they write to the journal, and the line that shows it: share done, speed, time left."""

import contextlib
import datetime
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from apache_beam.metrics import Metrics

from elmo_tf.files import staging
from elmo_tf.files.json_file import Row, Whole
from elmo_tf.files.progress import ProgressLine
from elmo_tf.pipelines.running import journal
from elmo_tf.pipelines.text import filesystems

_WRITE_SECONDS = 0.5
_POLL_SECONDS = 0.5
_FAR_SECONDS = 20.0  # between two questions to a remote store


class Amount(NamedTuple):
    """How much is done."""

    bytes: int = 0
    sentences: int = 0
    tokens: int = 0
    reused_bytes: int = 0  # done by an earlier run

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(*map(sum, zip(self, other, strict=True)))


_AMOUNT = Row((Whole(),) * len(Amount._fields))


class PhaseProgress:
    """Sums the progress that the tasks of a phase have written. There may be thousands: only changed files are read."""

    def __init__(self, notes: journal.Journal, phase: str):
        self._pattern = re.compile(rf"{phase}-\d+{re.escape(notes.mark + journal.PROGRESS_ENDING)}")
        self._folder = os.path.join(notes.folder, journal.UNFINISHED)
        self._known: dict[str, tuple[int, Amount]] = {}

    def amount(self) -> Amount:
        """Returns what the tasks have done so far."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if self._pattern.fullmatch(entry.name):
                    changed = entry.stat().st_mtime_ns
                    if self._known.get(entry.name, (None,))[0] != changed:
                        self._known[entry.name] = changed, _read_amount(entry.path)
        return sum((amount for _, amount in self._known.values()), Amount())


class TaskProgress:
    """Counts the progress of a task: in Beam's counters and, every half second, in its file of a local folder.

    In a remote store files cost too much.
    """

    def __init__(self, notes: journal.Journal, phase: str, number: int):
        path = notes.path(f"{phase}-{number:05d}{journal.PROGRESS_ENDING}")
        self._path = path if filesystems.is_local(notes.folder) else None
        self._amount = Amount()
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
        self._written = time.monotonic()
        if self._path:
            # The task itself reports a full disk.
            with contextlib.suppress(OSError):
                with open(f"{self._path}.new", "w", opener=staging.no_link) as file:
                    json.dump(self._amount, file)
                os.replace(f"{self._path}.new", self._path)


def _read_amount(path: str) -> Amount:
    """Returns the progress of a task; none if the file is damaged."""
    value = filesystems.read_json(path, _AMOUNT)
    return Amount() if value is None else Amount(*value)


@contextlib.contextmanager
def watched(doing: str, notes: journal.Journal, phase: str, num_tasks: int, size: int) -> Iterator[None]:
    """Shows the progress of a phase on stderr until the block ends.

    Args:
        doing: what to call the phase, such as "counting".
        notes: where its tasks write their progress. In a remote store they do not, and the number of results is shown:
            Flink tells Beam's counters only once a job has ended.
        phase: its name in the journal.
        num_tasks: its tasks.
        size: bytes that all of them read.
    """
    line, stop, start = ProgressLine(at_once=False), threading.Event(), time.monotonic()
    is_near = filesystems.is_local(notes.folder)
    progress = PhaseProgress(notes, phase)
    reused = 0 if is_near else len(notes.numbers(phase))

    def text() -> str | None:
        seconds = time.monotonic() - start
        if is_near:
            return describe(progress.amount(), size, seconds)
        # Tasks that only count leave no results.
        done = len(notes.numbers(phase))
        return describe_tasks(done, reused, num_tasks, seconds) if done else None

    def show() -> None:
        while not stop.wait(_POLL_SECONDS if is_near else _FAR_SECONDS):
            if line.due():
                # A file may be replaced while it is read.
                with contextlib.suppress(OSError):
                    if found := text():
                        line.show(f"{doing} {found}")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        line.clear()


def describe(amount: Amount, size: int, seconds: float) -> str:
    """Returns in words how much of `size` bytes is done, with the speed of these `seconds` and the time left."""
    left = _time_left(amount.bytes - amount.reused_bytes, size - amount.bytes, seconds)
    return (
        f"{min(amount.bytes / max(size, 1), 1):.0%}  {amount.sentences:,} sentences  {amount.tokens:,} tokens  "
        f"{amount.tokens / seconds:,.0f} tokens/s  {left}"
    )


def describe_tasks(done: int, reused: int, count: int, seconds: float) -> str:
    """Returns in words how many of `count` tasks are done, `reused` of them by an earlier run, and the time left."""
    return f"{done:,} of {count:,} tasks  {_time_left(done - reused, count - done, seconds)}"


def _time_left(done: int, remaining: int, seconds: float) -> str:
    if done <= 0:
        return "time left unknown"
    return f"{datetime.timedelta(seconds=round(max(remaining, 0) * seconds / done))} left"
