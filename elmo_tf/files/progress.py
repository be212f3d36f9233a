"""The progress line on stderr."""

import contextlib
import math
import sys
import time

_LINE_SECONDS = 10.0  # between lines when stderr is not a terminal
_REDRAW_SECONDS = 0.5  # between updates of the line on a terminal


class ProgressLine:
    """A line that is redrawn in place on a terminal, and printed every few seconds elsewhere."""

    def __init__(self, at_once: bool = True):
        """Makes a line whose first text is due at once, or only after the usual interval."""
        self._terminal = sys.stderr.isatty()
        self._interval = _REDRAW_SECONDS if self._terminal else _LINE_SECONDS
        self._shown = -math.inf if at_once else time.monotonic()

    def due(self) -> bool:
        """Whether it is time to show a new text."""
        return time.monotonic() - self._shown >= self._interval

    def show(self, text: str) -> None:
        """Shows `text` now; on a terminal it replaces the previous text."""
        self._shown = time.monotonic()
        _print(f"\r{text}\033[K", end="") if self._terminal else _print(text)

    def leave(self, text: str | None = None) -> None:
        """Shows `text`, if given, and ends the line: the next output starts below it."""
        if text is not None:
            self.show(text)
        if self._terminal and self._shown > -math.inf:
            _print("")
        self._shown = -math.inf

    def clear(self) -> None:
        """Erases the line on a terminal."""
        if self._terminal and self._shown > -math.inf:
            _print("\r\033[K", end="")
        self._shown = -math.inf


def _print(text: str, end: str = "\n") -> None:
    # A log on a full disk, or a reader that has gone, is no reason to end.
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)
