"""What a person sees while a pipeline runs: how far it is, how fast, and how long it still takes."""

import contextlib
import datetime
import threading
import time
from collections.abc import Iterator

from elmo_tf.files.progress import ProgressLine
from pipelines.running import journal
from pipelines.text import filesystems

_POLL_SECONDS = 0.5


@contextlib.contextmanager
def watched(doing: str, notes: journal.Journal, phase: str, size: int) -> Iterator[None]:
    """Shows the progress of a phase on stderr until the block ends.

    Args:
        doing: what to call the phase, such as "counting".
        notes: where its tasks tell how far they are. In a store in the network they do not; then nothing is shown, and
            the runner's own pages are the place to look.
        phase: the phase's name there.
        size: bytes of text in all; a guess is good enough.
    """
    if not filesystems.is_local(notes.folder):
        yield
        return
    line, stop, start = ProgressLine(at_once=False), threading.Event(), time.monotonic()
    beats = journal.Beats(notes, phase)

    def show() -> None:
        while not stop.wait(_POLL_SECONDS):
            if line.due():
                with contextlib.suppress(OSError, ValueError):  # a beat is being replaced
                    line.show(f"{doing} {describe(beats.amount(), size, time.monotonic() - start)}")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        line.clear()


def describe(amount: journal.Amount, size: int, seconds: float) -> str:
    """Returns in words how much of `size` bytes is done; rate and time left are those of the last `seconds`."""
    done = amount.bytes - amount.reused_bytes
    remaining = max(size - amount.bytes, 0)
    left = (
        f"{datetime.timedelta(seconds=round(remaining * seconds / done))} left" if done else "time left not known yet"
    )
    return (
        f"{min(amount.bytes / max(size, 1), 1):.0%}  {amount.sentences:,} sentences  {amount.tokens:,} tokens  "
        f"{amount.tokens / seconds:,.0f} tokens/s  {left}"
    )
