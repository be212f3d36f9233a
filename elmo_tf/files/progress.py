"""The progress line on stderr."""

import contextlib
import math
import os
import shutil
import sys
import time
from collections.abc import Callable

from elmo_tf.errors import printable

_LINE_SECONDS = 10.0  # between lines when stderr is not a terminal
_REDRAW_SECONDS = 0.5  # between updates of the line on a terminal
_BAR_CELLS = 20


class ProgressLine:
    """A line that is redrawn on a terminal, and printed every few seconds elsewhere.

    Its first text is shown `at_once`, or after the usual interval.
    """

    def __init__(self, at_once: bool = True):
        self._terminal = sys.stderr.isatty()
        self._interval = _REDRAW_SECONDS if self._terminal else _LINE_SECONDS
        self._last = -math.inf if at_once else time.monotonic()  # when a text was shown
        self._is_open = False  # whether there is a text that the next text replaces

    def due(self) -> bool:
        """Whether it is time to show a new text."""
        return time.monotonic() - self._last >= self._interval

    def show(self, text: str) -> None:
        """Shows `text` now; on a terminal it replaces the previous text and is shortened to fit."""
        self._show(_shortened(text, _columns()) if self._terminal else text)

    def leave(self, text: str | None = None) -> None:
        """Shows `text`, if given, and ends the line: the next output starts below it."""
        if text is not None:
            self._show(text)
        self._end("\n")

    def clear(self) -> None:
        """Erases the line on a terminal."""
        self._end("\033[K")

    def _end(self, last: str) -> None:
        if self._terminal and self._is_open:
            _print(last, end="")
        self._last, self._is_open = -math.inf, False

    def _show(self, text: str) -> None:
        self._last, self._is_open = time.monotonic(), True
        text = printable(text, kept="\n")
        # The cursor goes back to the start, so that whatever is printed next replaces the line.
        _print(f"{text}\033[K\r", end="") if self._terminal else _print(text)


def reporter(template: str) -> Callable[[int, int], None]:
    """Returns a function to call with the number of things done and the total.

    It shows both numbers in `template`, such as `scored {:,} of {:,} sentences`, and a bar in place of `{bar}`.
    """
    line = ProgressLine(at_once=False)

    def report(done: int, total: int) -> None:
        if done >= total:
            line.clear()
        elif line.due():
            filled = _BAR_CELLS * done // total
            line.show(template.format(done, total, bar=f"[{'#' * filled}{'.' * (_BAR_CELLS - filled)}]"))

    return report


def _columns() -> int:
    """Returns the width of the terminal; a pseudo-terminal may have none."""
    with contextlib.suppress(OSError, ValueError):
        if columns := os.get_terminal_size(sys.stderr.fileno()).columns:
            return columns
    return shutil.get_terminal_size().columns


def _shortened(text: str, columns: int) -> str:
    """Returns `text` without the last items that do not fit on a line; two spaces separate items.

    The last column stays free, because a terminal that has filled it would erase it with the rest of the line.
    """
    while len(text) >= columns and "  " in text:
        text = text.rpartition("  ")[0]
    return text[: columns - 1]


def _print(text: str, end: str = "\n") -> None:
    # Ignore write errors (full disk, closed pipe): progress output must not stop the run.
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)
