"""Lines of a file that its reader leaves out or mends: a single warning has their count and the first few."""

import logging
import os

from elmo_tf.errors import InputError

_MOST_NAMED = 3

_log = logging.getLogger("elmo_tf")


class OddLines:
    """The odd lines of a file. A reader adds each, and reports them at the end.

    Args:
        path: the file.
        strict: whether an odd line is an error.
    """

    def __init__(self, path: str | os.PathLike, strict: bool = False):
        self._path, self._strict = str(path), strict
        self._count = 0
        self._first: list[str] = []

    def add(self, number: int, problem: str, action: str = "left out") -> None:
        """Notes a line by its number, what is wrong with it, and what the reader does about it.

        Raises:
            InputError: naming the line, if odd lines are errors.
        """
        if self._strict:
            raise InputError(f"{self._path}, line {number}", f"{problem}; without --strict it is {action}")
        self._count += 1
        if self._count <= _MOST_NAMED:
            self._first.append(f"line {number} ({problem}: {action})")

    def report(self) -> None:
        """Logs how many there were and the first ones, if there were any."""
        if self._count:
            more = ", ..." if self._count > _MOST_NAMED else ""
            what = "odd line" if self._count == 1 else "odd lines"
            _log.warning("warning: %s: %d %s: %s%s", self._path, self._count, what, ", ".join(self._first), more)
