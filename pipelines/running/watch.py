"""The progress line of a running pipeline: share done, speed, time left."""

import contextlib
import datetime
import threading
import time
from collections.abc import Iterator

from elmo_tf.files.progress import ProgressLine
from pipelines.running import journal, task_progress
from pipelines.text import filesystems

_POLL_SECONDS = 0.5


@contextlib.contextmanager
def watched(doing: str, notes: journal.Journal, phase: str, size: int) -> Iterator[None]:
    """Shows the progress of a phase on stderr until the block ends.

    Args:
        doing: what to call the phase, such as "counting".
        notes: where its tasks write their progress. In a remote store they do not, and nothing is shown: see the
            runner's own pages.
        phase: its name in the journal.
        size: bytes of text in all; an estimate will do.
    """
    if not filesystems.is_local(notes.folder):
        yield
        return
    line, stop, start = ProgressLine(at_once=False), threading.Event(), time.monotonic()
    progress = task_progress.PhaseProgress(notes, phase)

    def show() -> None:
        while not stop.wait(_POLL_SECONDS):
            if line.due():
                # A file may be replaced while it is read.
                with contextlib.suppress(OSError):
                    line.show(f"{doing} {describe(progress.amount(), size, time.monotonic() - start)}")

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
