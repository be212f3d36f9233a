"""`metrics.jsonl` of a workdir: one line of JSON per step and one per evaluation, none twice.

{"step": 7, "forward_loss": 5.1, "backward_loss": 5.2, "gradient_norm": 9.6}         losses in nats per token
{"step": 200, "heldout": "3f2c...", "perplexity": 98.2, "forward_perplexity": ...}   `heldout` identifies the text
{"step": 900, "heldout": "77a0...", "perplexity": 97.1, ..., "whole": true}          others are of a part of it

It contains nothing about time, so a run that was killed and resumed leaves the same file as an uninterrupted one. A run
reads it once, when it starts, and appends to it.
"""

import itertools
import json
import logging
import math
import os
import pathlib
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO

from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging
from elmo_tf.files.json_file import Object, Real, Text, Whole

FILE = "metrics.jsonl"
_STEP = Object({"step": Whole()})
# The perplexity of a diverged model may be infinite, or not a number.
_EVALUATION = Object({"step": Whole(), "heldout": Text(), "perplexity": Real(0, math.inf, nan=True)})

# A step's line as it is written here; parsing it as any JSON takes ten times as long.
_STEP_LINE = re.compile(rb'\{"step": (\d{1,15}), "forward_loss": \S+, "backward_loss": \S+, "gradient_norm": \S+\}\n')

_log = logging.getLogger("elmo_tf")


class MetricsFile:
    """The file, ready for the lines after `step`.

    Args:
        path: of the file; made if it does not exist.
        step: lines of later steps are removed, because these steps will be repeated; None: training begins without a
            checkpoint, and a file that is there is kept under another name, with a warning.
        on_line: called with each line that is added, as a dictionary.

    Attributes:
        evaluations: those in the file and those added, in order.

    Raises:
        InputError: naming the line, if one up to `step` is damaged; or if the file is a link.
    """

    def __init__(
        self, path: str | os.PathLike, step: int | None, on_line: Callable[[dict[str, Any]], None] | None = None
    ):
        self._on_line = on_line
        self._path = pathlib.Path(path)
        self._pending: list[bytes] = []
        self._failing = False
        if step is None:
            _set_aside(self._path)
        self._size, self.evaluations = _up_to(self._path, step or 0)
        with open(self._path, "ab", opener=staging.no_link) as file:
            file.truncate(self._size)

    def add(self, values: dict[str, Any]) -> None:
        """Adds a line; `flush` writes it."""
        self._pending.append(json.dumps(values).encode() + b"\n")
        if "heldout" in values:
            self.evaluations.append(values)
        if self._on_line is not None:
            self._on_line(values)

    def flush(self, sync: bool = False) -> None:
        """Writes the added lines, with `sync` to the disk itself; if that fails, warns and keeps them for next time."""
        content = b"".join(self._pending)
        try:
            with self._opened() as file:
                file.seek(self._size)
                file.write(content)
                file.truncate()
            if sync:
                staging.sync(self._path)
        except OSError as error:
            if not self._failing:
                _log.warning("warning: %s: %s; lines are kept until they can be written", self._path, error)
            self._failing = True
            return
        self._failing = False
        self._size += len(content)
        self._pending.clear()

    def _opened(self) -> BinaryIO:
        """Opens the file for writing; one that was deleted begins anew, with a warning."""
        try:
            return open(self._path, "r+b", opener=staging.no_link)
        except FileNotFoundError:
            file = self._path.open("xb")
        _log.warning("warning: %s was deleted; a new one begins with the lines from here on", self._path)
        self._size = 0
        return file


def evaluations(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Returns the evaluations in a file, in order; none if the file does not exist.

    Raises:
        InputError: naming the line, if one of them is damaged.
    """
    if not pathlib.Path(path).exists():
        return []
    return [
        json_file.parse(line, _EVALUATION, _name(path, number))
        for line, number in _lines(pathlib.Path(path))
        if b'"heldout"' in line
    ]


def comparable(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the evaluations that can be compared with the last one: on the same text, or the same part of it.

    If there are evaluations of a part and of the whole text that it belongs to, the last one of a part counts.
    """
    regular = [one for one in found if not one.get("whole")] or found
    return [one for one in found if one["heldout"] == regular[-1]["heldout"]]


def best(found: list[dict[str, Any]], steps: Collection[int] | None = None) -> dict[str, Any] | None:
    """Returns the evaluation with the lowest perplexity of those that are `comparable`; None if there is none.

    Args:
        found: as `evaluations` returns them.
        steps: only evaluations of these steps count; None: all.
    """
    there = [one for one in comparable(found) if steps is None or one["step"] in steps]
    return min(there, key=_perplexity, default=None)


def evaluations_since_best(found: list[dict[str, Any]]) -> int:
    """Returns how many of the evaluations that are `comparable` came after the best."""
    perplexities = [_perplexity(one) for one in comparable(found)]
    return len(perplexities) - 1 - perplexities.index(min(perplexities)) if perplexities else 0


def _perplexity(evaluation: dict[str, Any]) -> float:
    """Returns the perplexity to compare; what is not a number is worse than any."""
    return math.inf if math.isnan(evaluation["perplexity"]) else evaluation["perplexity"]


def _set_aside(path: pathlib.Path) -> None:
    """Renames the file of a run that has no checkpoint, with a warning, unless it does not exist or is empty."""
    if not path.exists() or path.stat().st_size == 0:
        return
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in itertools.count(1))
    kept = next(name for name in names if not name.exists())
    os.replace(path, kept)
    _log.warning(
        "warning: %s has losses of an earlier run but no checkpoint of it: training begins at step 0, and that file is "
        "kept as %s",
        *(path, kept.name),
    )


def _up_to(path: pathlib.Path, step: int) -> tuple[int, list[dict[str, Any]]]:
    """Returns the size of the lines up to `step`, and the evaluations among them."""
    size, reached, found = 0, 0, []
    if not path.exists():
        return size, found
    for line, number in _lines(path):
        try:
            reached, evaluation = _read(path, line, number)
        except InputError:
            # After the last step that counts, a crash may have left anything.
            if reached == step:
                break
            raise
        if reached > step:
            break
        size += len(line)
        if evaluation is not None:
            found.append(evaluation)
    return size, found


def _read(path: pathlib.Path, line: bytes, number: int) -> tuple[int, dict[str, Any] | None]:
    """Returns a line's step, and the line if it is an evaluation."""
    if match := _STEP_LINE.fullmatch(line):
        return int(match[1]), None
    values = json_file.parse(line, _EVALUATION if b'"heldout"' in line else _STEP, _name(path, number))
    return values["step"], values if "heldout" in values else None


def _name(path: str | os.PathLike, number: int) -> str:
    return f"{path}, line {number}"


def _lines(path: pathlib.Path) -> Iterator[tuple[bytes, int]]:
    """Yields the complete lines of a file and their numbers; a crash may have cut the last one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield line, number
