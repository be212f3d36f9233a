"""The progress line of a running pipeline: share done, speed, time left."""

import contextlib
import datetime
import threading
import time
from collections.abc import Iterator

from elmo_tf.files.progress import ProgressLine
from elmo_tf.pipelines.running import journal, task_plan, task_progress
from elmo_tf.pipelines.text import filesystems

_POLL_SECONDS = 0.5
_FAR_SECONDS = 20.0  # between two questions to a remote store


@contextlib.contextmanager
def watched(doing: str, notes: journal.Journal, plan: task_plan.Plan) -> Iterator[None]:
    """Shows the progress of a phase on stderr until the block ends.

    Args:
        doing: what to call the phase, such as "counting".
        notes: where its tasks write their progress. In a remote store they do not, and the number of results is shown:
            Flink tells Beam's counters only once a job has ended.
        plan: its tasks.
    """
    line, stop, start = ProgressLine(at_once=False), threading.Event(), time.monotonic()
    is_near = filesystems.is_local(notes.folder)
    progress = task_progress.PhaseProgress(notes, plan.phase)
    reused = 0 if is_near else len(notes.numbers(plan.phase))

    def text() -> str | None:
        seconds = time.monotonic() - start
        if is_near:
            return describe(progress.amount(), plan.size, seconds)
        # Tasks that only count leave no results.
        done = len(notes.numbers(plan.phase))
        return describe_tasks(done, reused, plan.num_tasks, seconds) if done else None

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


def describe(amount: task_progress.Amount, size: int, seconds: float) -> str:
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
