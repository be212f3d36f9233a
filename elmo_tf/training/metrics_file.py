"""`metrics.jsonl` of a workdir: one line of JSON per step and one per evaluation, none twice.

{"step": 7, "forward_loss": 5.1, "backward_loss": 5.2, "gradient_norm": 9.6}         losses in nats per token
{"step": 200, "heldout": "3f2c...", "perplexity": 98.2, "forward_perplexity": ...}   `heldout` identifies the text

It contains nothing about time, so a run that was killed and resumed leaves the same file as an uninterrupted one.
"""

import json
import logging
import math
import os
import pathlib
from collections.abc import Collection, Iterator
from typing import Any

from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging
from elmo_tf.files.json_file import Object, Real, Text, Whole

FILE = "metrics.jsonl"
_STEP = Object({"step": Whole()})
# The perplexity of a diverged model may be infinite.
_EVALUATION = Object({"step": Whole(), "heldout": Text(), "perplexity": Real(0, math.inf)})

_log = logging.getLogger("elmo_tf")


class MetricsFile:
    """The file, ready for the lines after `step`.

    Args:
        path: of the file; made if it does not exist.
        step: lines of later steps are removed, because these steps will be repeated; None: all lines.

    Raises:
        InputError: naming the line, if one up to `step` is damaged.
    """

    def __init__(self, path: str | os.PathLike, step: int | None):
        self._path = pathlib.Path(path)
        self._pending: list[bytes] = []
        self._failing = False
        self._size = _size_up_to(self._path, step)
        with self._path.open("ab") as file:
            file.truncate(self._size)

    def add(self, values: dict[str, Any]) -> None:
        """Adds a line; `flush` writes it."""
        self._pending.append(json.dumps(values).encode() + b"\n")

    def flush(self, sync: bool = False) -> None:
        """Writes the added lines, with `sync` to the disk itself; if that fails, warns and keeps them for next time."""
        content = b"".join(self._pending)
        try:
            with self._path.open("r+b") as file:
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


def evaluations(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Returns the evaluations in a file, in order; none if the file does not exist.

    Raises:
        InputError: naming the line, if one of them is damaged.
    """
    if not pathlib.Path(path).exists():
        return []
    return [
        json_file.parse(line, _EVALUATION, source)
        for line, source in _lines(pathlib.Path(path))
        if b'"heldout"' in line
    ]


def best(found: list[dict[str, Any]], steps: Collection[int] | None = None) -> dict[str, Any] | None:
    """Returns the evaluation with the lowest perplexity on the text of the last one; None if there is none.

    Args:
        found: as `evaluations` returns them.
        steps: only evaluations of these steps count; None: all.
    """
    there = [one for one in _of_last_text(found) if steps is None or one["step"] in steps]
    return min(there, key=lambda one: one["perplexity"], default=None)


def waited(found: list[dict[str, Any]]) -> int:
    """Returns how many evaluations on the text of the last one came after the best."""
    perplexities = [one["perplexity"] for one in _of_last_text(found)]
    return len(perplexities) - 1 - perplexities.index(min(perplexities)) if perplexities else 0


def _of_last_text(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if one["heldout"] == found[-1]["heldout"]]


def _size_up_to(path: pathlib.Path, step: int | None) -> int:
    """Returns the size of the lines up to `step`."""
    size, reached = 0, -1
    if step is None or not path.exists():
        return size
    for line, source in _lines(path):
        try:
            reached = json_file.parse(line, _STEP, source)["step"]
        except InputError:
            # After the last step that counts, a crash may have left anything.
            if reached == step:
                break
            raise
        if reached > step:
            break
        size += len(line)
    return size


def _lines(path: pathlib.Path) -> Iterator[tuple[bytes, str]]:
    """Yields the complete lines of a file and their names; a crash may have cut the last one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield line, f"{path}, line {number}"
