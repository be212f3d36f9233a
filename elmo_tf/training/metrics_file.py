"""`metrics.jsonl` of a workdir: one line of JSON a step, one an evaluation, none twice.

{"step": 7, "forward_loss": 5.1, "backward_loss": 5.2, "gradient_norm": 9.6}         losses in nats per token
{"step": 200, "heldout": "3f2c...", "perplexity": 98.2, "forward_perplexity": ...}   `heldout` tells the text

It holds numbers that training decides and nothing about time, so a run that was killed and resumed leaves the same file
as one that was not.
"""

import json
import logging
import os
import pathlib
from collections.abc import Collection

from elmo_tf.files import staging

FILE = "metrics.jsonl"

_log = logging.getLogger("elmo_tf")


class MetricsFile:
    """The file, open for what comes after `step`.

    Args:
        path: of the file; made if it is not there.
        step: what later steps left in it is cut off, for they are going to be made again; None: everything.
    """

    def __init__(self, path: str | os.PathLike, step: int | None):
        self._path = pathlib.Path(path)
        self._pending: list[bytes] = []
        self._full = False  # whether the last try to write failed
        self._size = _size_up_to(self._path, step)
        with self._path.open("ab") as file:
            file.truncate(self._size)

    def add(self, values: dict) -> None:
        """Takes one line's values; `flush` writes them."""
        self._pending.append(json.dumps(values).encode() + b"\n")

    def flush(self, sync: bool = False) -> None:
        """Writes the lines added, with `sync` down to the disk; if that fails says so, and keeps them for next time."""
        content = b"".join(self._pending)
        try:
            with self._path.open("r+b") as file:
                file.seek(self._size)
                file.write(content)
                file.truncate()
            if sync:
                staging.sync(self._path)
        except OSError as error:
            if not self._full:
                _log.warning("warning: %s: %s; its lines are kept until they can be written", self._path, error)
            self._full = True
            return
        self._full = False
        self._size += len(content)
        self._pending.clear()


def evaluations(path: str | os.PathLike) -> list[dict]:
    """Returns the evaluations in a file, in its order; none if it is not there."""
    if not pathlib.Path(path).exists():
        return []
    with pathlib.Path(path).open("rb") as file:
        return [values for line in file if b'"heldout"' in line and (values := _values(line)) is not None]


def best(found: list[dict], steps: Collection[int] | None = None) -> dict | None:
    """Returns the evaluation with the lowest perplexity on the text of the last one; None if there is none.

    Args:
        found: of `evaluations`.
        steps: only these count; None: all.
    """
    there = [one for one in _of_last_text(found) if steps is None or one["step"] in steps]
    return min(there, key=lambda one: one["perplexity"], default=None)


def waited(found: list[dict]) -> int:
    """Returns how many evaluations, on the text of the last one, came after the best."""
    perplexities = [one["perplexity"] for one in _of_last_text(found)]
    return len(perplexities) - 1 - perplexities.index(min(perplexities)) if perplexities else 0


def _of_last_text(found: list[dict]) -> list[dict]:
    return [one for one in found if one["heldout"] == found[-1]["heldout"]]


def _size_up_to(path: pathlib.Path, step: int | None) -> int:
    """Returns the bytes of the lines up to `step`, without a last one that was cut by a crash."""
    size = 0
    if step is None or not path.exists():
        return size
    with path.open("rb") as file:
        for line in file:
            values = _values(line)
            if not line.endswith(b"\n") or (values is not None and values["step"] > step):
                break
            size += len(line)
    return size


def _values(line: bytes) -> dict | None:
    """Returns a line's values; None if it is none."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return values if isinstance(values, dict) and "step" in values else None
