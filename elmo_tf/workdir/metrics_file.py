"""`metrics.jsonl` of a workdir: one line of JSON for each step and each evaluation.

{"step": 7, "forward_loss": 5.1, "backward_loss": 5.2, "gradient_norm": 9.6}         losses in nats per token
{"step": 200, "heldout": "3f2c...", "perplexity": 98.2, "forward_perplexity": ...}   `heldout` identifies the text
{"step": 900, "heldout": "77a0...", "perplexity": 97.1, ..., "whole": true}          lines without `whole` are of a part

It holds no times, so a run that was killed and resumed leaves the same file as an uninterrupted run. A run reads it
once, when it starts, and appends to it.
"""

import logging
import math
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from elmo_tf.errors import InputError
from elmo_tf.files import intact, json_file, staging
from elmo_tf.files.json_file import Count

FILE = "metrics.jsonl"
MetricsLine = dict[str, Any]  # the losses of a step, or an evaluation

_log = logging.getLogger("elmo_tf")


class StepLine(msgspec.Struct, frozen=True):
    """The part of a training step's line that is read."""

    step: Count


class HeldoutLine(msgspec.Struct, frozen=True):
    """A line about an evaluation on held-out text."""

    step: Count
    heldout: str  # identifies the text, or the part of it
    perplexity: float | None  # None, which earlier versions wrote as NaN or Infinity: the model diverged
    tokens: Count = 0  # predicted by each direction
    whole: bool = False  # the whole text, while the run's other evaluations are of a part

    def __post_init__(self) -> None:
        if self.perplexity is not None and self.perplexity < 0:
            raise ValueError("Expected a perplexity of at least 0")

    @property
    def rank(self) -> float:
        """The perplexity to compare; that of a model that diverged is worse than any number."""
        return math.inf if self.perplexity is None or math.isnan(self.perplexity) else self.perplexity


_HELDOUT = b'"heldout"'  # only in lines about evaluations
# Ten times as fast as `json_file`, which reads lines that this decoder rejects, such as those with NaN.
_STEP = msgspec.json.Decoder(StepLine)


class MetricsFile:
    """The file, open for the lines after `step`.

    Args:
        path: the file; made if it does not exist.
        step: lines of later steps are removed, because those steps will be repeated. None: training starts without a
            checkpoint, and the lines of an earlier run are kept as `metrics.jsonl.old`, with a warning.
        on_line: called with a copy of each line that is added. If it raises, the first exception becomes a warning.

    Attributes:
        evaluations: those in the file and those added, in order.

    Raises:
        InputError: naming the line, if a line up to `step` is damaged; or if the file is a link.
    """

    def __init__(self, path: str | os.PathLike, step: int | None, on_line: Callable[[MetricsLine], None] | None = None):
        self._on_line = on_line
        self._warned = False  # of an exception in `on_line`
        self._path = pathlib.Path(path)
        self._pending: list[bytes] = []
        if step is None and self._path.exists() and self._path.stat().st_size:
            kept = self._path.with_name(f"{FILE}.old")
            os.replace(self._path, kept)
            _log.warning("warning: no checkpoint: training starts at step 0; the earlier losses are kept in %s", kept)
        size, self.evaluations = _up_to(self._path, step or 0)
        with open(self._path, "ab", opener=staging.no_link) as file:
            file.truncate(size)

    def add(self, values: MetricsLine) -> None:
        """Adds a line; `flush` writes it."""
        self._pending.append(json_file.dumps(values).encode() + b"\n")
        if "heldout" in values:
            self.evaluations.append(msgspec.convert(values, HeldoutLine))
        if self._on_line is None:
            return
        try:
            self._on_line(dict(values))
        except Exception as error:
            if not self._warned:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                _log.warning("warning: on_record raised %s; training continues; further errors are not shown", reason)
            self._warned = True

    def flush(self, sync: bool = False) -> None:
        """Writes the added lines, with `sync` down to the disk; raises `OSError` if that fails."""
        with open(self._path, "ab", opener=staging.no_link) as file:
            file.write(b"".join(self._pending))
        self._pending.clear()
        if sync:
            staging.sync(self._path)


def evaluations(path: str | os.PathLike) -> list[HeldoutLine]:
    """Returns the evaluations in a file, in order; none if the file does not exist.

    Raises:
        InputError: naming the line, if one of them is damaged.
    """
    lines = ((line, f"{path}, line {number}") for line, number in _lines(pathlib.Path(path)) if _HELDOUT in line)
    return [json_file.parse(line, HeldoutLine, source) for line, source in lines]


def comparable(evaluations: Sequence[HeldoutLine]) -> list[HeldoutLine]:
    """Returns the evaluations that can be compared with the last one: those of the same text or part of it.

    If there are evaluations of a part and of the whole text, those of the last part count.
    """
    regular = [line for line in evaluations if not line.whole] or evaluations
    return [line for line in evaluations if line.heldout == regular[-1].heldout]


def best(evaluations: Sequence[HeldoutLine], steps: Collection[int] | None = None) -> HeldoutLine | None:
    """Returns the `comparable` evaluation with the lowest perplexity; None if there is none.

    If `steps` are given, only evaluations of these count.
    """
    candidates = [line for line in comparable(evaluations) if steps is None or line.step in steps]
    return min(candidates, key=lambda line: line.rank, default=None)


def evaluations_since_best(evaluations: Sequence[HeldoutLine]) -> int:
    """Returns how many of the `comparable` evaluations came after the best."""
    ranks = [line.rank for line in comparable(evaluations)]
    return len(ranks) - 1 - ranks.index(min(ranks)) if ranks else 0


def _up_to(path: pathlib.Path, step: int) -> tuple[int, list[HeldoutLine]]:
    """Returns the size of the lines up to `step`, and the evaluations among them."""
    size, reached = 0, 0
    evaluations: list[HeldoutLine] = []
    for line, number in _lines(path):
        try:
            parsed = _parsed(path, line, number)
        except InputError:
            # A crash may have left anything after the last complete step.
            if reached == step:
                break
            raise
        reached = parsed.step
        if reached > step:
            break
        size += len(line)
        if isinstance(parsed, HeldoutLine):
            evaluations.append(parsed)
    return size, evaluations


def _parsed(path: str | os.PathLike, line: bytes, number: int) -> StepLine | HeldoutLine:
    if _HELDOUT in line:
        return json_file.parse(line, HeldoutLine, f"{path}, line {number}")
    try:
        return _STEP.decode(line)
    except msgspec.DecodeError:
        return json_file.parse(line, StepLine, f"{path}, line {number}")


def _lines(path: pathlib.Path) -> Iterator[tuple[bytes, int]]:
    """Yields the complete lines of a file, if there is one, and their numbers; a crash may have cut the last one."""
    if not path.exists():
        return
    intact.check_regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield line, number
