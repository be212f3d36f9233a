"""The progress line of a running pipeline: share done, speed, time left."""

import contextlib
import datetime
import threading
import time
from collections.abc import Iterator

from elmo_tf.files.progress import ProgressLine
from pipelines.running import journal, task_plan, task_progress
from pipelines.text import filesystems

_POLL_SECONDS = 0.5
_FAR_SECONDS = 20.0  # between two questions to a remote store


@contextlib.contextmanager
def watched(doing: str, notes: journal.Journal, plan: task_plan.Plan) -> Iterator[None]:
    """Shows the progress of a phase on stderr until the block ends.

    Args:
        doing: what to call the phase, such as "counting".
        notes: where its tasks write their progress. In a remote store they do not, and the number of results is shown.
        plan: its tasks.
    """
    line, stop, start = ProgressLine(at_once=False), threading.Event(), time.monotonic()
    is_near = filesystems.is_local(notes.folder)
    progress = task_progress.PhaseProgress(notes, plan.phase)

    def text() -> str | None:
        if is_near:
            return describe(progress.amount(), plan.size, time.monotonic() - start)
        # Tasks that only count leave no results.
        done = len(notes.numbers(plan.phase))
        return f"{done:,} of {plan.num_tasks:,} tasks" if done else None

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
    done = amount.bytes - amount.reused_bytes
    remaining = max(size - amount.bytes, 0)
    left = f"{datetime.timedelta(seconds=round(remaining * seconds / done))} left" if done else "time left unknown"
    return (
        f"{min(amount.bytes / max(size, 1), 1):.0%}  {amount.sentences:,} sentences  {amount.tokens:,} tokens  "
        f"{amount.tokens / seconds:,.0f} tokens/s  {left}"
    )
