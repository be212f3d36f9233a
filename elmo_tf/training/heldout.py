"""The held-out text of a training: which part of it is evaluated, and when all of it is."""

import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Collection, Iterable

from elmo_tf.config import Config, TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging
from elmo_tf.files.json_file import Object, Text, Whole
from elmo_tf.records.record_folder import Records
from elmo_tf.training.evaluation import Evaluation, Evaluator

SHARE = 0.05  # of the time, for evaluations whose size is not given
PART, WHOLE = 1, 2
FILE = "heldout.json"  # in a workdir: how many tokens an evaluation takes, if that was measured
_MEASURED = Object({"tokens": Whole(), "heldout": Text(), "eval_steps": Whole()})


class Heldout:
    """The text, and the part of it that each evaluation takes: always the same, from the first sentence on.

    Args:
        records: the text.
        evaluator: of the network that is trained.
        config: its `batch_size` streams of `unroll_steps` tokens make a window.

    Attributes:
        tokens: of the part, in each direction, boundaries included; 0: all; None: not known yet.
    """

    def __init__(self, records: Records, evaluator: Evaluator, config: TrainConfig):
        self.tokens = config.eval_tokens
        self.total = records.info["tokens"] + records.info["sentences"]
        self._records = records
        self._evaluator = evaluator
        self._shape = config.batch_size, config.unroll_steps

    @property
    def id(self) -> str:
        """Identifies the whole text and how it is divided into streams and windows, on which perplexities depend."""
        return text_id(self._records, *map(str, self._shape))

    @property
    def part_id(self) -> str | None:
        """Identifies the part likewise; the same as `id` if the part is the whole text, and None if it is not known."""
        if self.tokens is None:
            return None
        return self.id if self._windows is None else text_id(self._records, *map(str, (self._windows, *self._shape)))

    @property
    def _windows(self) -> int | None:
        """How many windows the part has; None: all."""
        per_window = self._shape[0] * self._shape[1]
        count = -(-(self.tokens or 0) // per_window)
        return count if 0 < count * per_window < self.total else None

    def window_seconds(self) -> float:
        """Returns how long a window takes."""
        return self._evaluator.window_seconds(self._records, *self._shape)

    def part_for(self, window_seconds: float, seconds: float) -> int:
        """Returns for `tokens` what takes `SHARE` of the time, at least a window.

        Args:
            window_seconds: that a window takes to evaluate.
            seconds: that training takes between two evaluations.
        """
        per_window, budget = self._shape[0] * self._shape[1], seconds * SHARE / (1 - SHARE)
        if window_seconds * self.total <= budget * per_window:
            return 0
        return per_window * max(1, int(budget / window_seconds))

    def missing(self, known: Collection[str], final: bool) -> int:
        """Returns what is still to be evaluated at a step: the sum of `PART` and `WHOLE`.

        Args:
            known: ids of what has been evaluated there.
            final: whether the whole text is wanted as well.
        """
        part = PART if self.part_id is not None and self.part_id not in known else 0
        return part + (WHOLE if final and self.id not in known and self.id != self.part_id else 0)

    def evaluate(self, choice: int, interrupted: Callable[[], bool]) -> list[tuple[int, Evaluation]]:
        """Returns `PART`, `WHOLE` or both, as `choice` says, with their evaluations, made in one pass.

        Nothing if `interrupted` has returned True.
        """
        kinds = [kind for kind in (PART, WHOLE) if choice & kind]
        counts = [self._windows if kind == PART else None for kind in kinds]
        found = self._evaluator.parts(self._records, counts, *self._shape, interrupted)
        return list(zip(kinds, found, strict=False))

    def described(self, window_seconds: float, seconds: float) -> str:
        """Returns, for a line of the log, what an evaluation takes; arguments as for `part_for`."""
        per_window = self._shape[0] * self._shape[1]
        needed = window_seconds * (self._windows or self.total / per_window)
        how_many = f"the first {self.tokens:,} of" if self._windows else "all"
        share = needed / (needed + seconds)
        line = (
            f"each evaluation uses {how_many} {self.total:,} held-out tokens (train.eval_tokens), which takes "
            f"{100 * share:.1f} % of the time"
        )
        # A window is the least; measured times differ a little from those that `part_for` had.
        return line if share <= 1.2 * SHARE else f"{line}; evaluate less often with train.eval_steps"


def check_tokens(config: Config, records: Records | None, begun: Config | None) -> None:
    """Raises `InputError` if `train.eval_tokens` is set to more than `records` has.

    Args:
        config: what is asked for.
        records: the held-out text, if there is one.
        begun: the configuration of a run that goes on; what was set for its text may be more than another one has.
    """
    tokens = config.train.eval_tokens
    if records is None or tokens is None or (begun is not None and begun.train.eval_tokens == tokens):
        return
    total = records.info["tokens"] + records.info["sentences"]
    if tokens > total:
        expected = f"at most the {total:,} tokens of `heldout`, sentence boundaries included (0: all)"
        raise InputError("train.eval_tokens", expected, f"{tokens:,}")


def check_patience(config: Config, heldout: object | None) -> None:
    """Raises `InputError` if `train.patience` is set and there is no held-out text."""
    if config.train.patience and heldout is None:
        raise InputError("train.patience", "`heldout` with it", "none")


def measured(workdir: pathlib.Path, heldout_id: str, eval_steps: int) -> int | None:
    """Returns how many tokens an evaluation takes, as `store` wrote it for this text and interval; None if it did not.

    Raises:
        InputError: if the file is damaged.
    """
    if not (workdir / FILE).exists():
        return None
    found = json_file.read(workdir / FILE, _MEASURED)
    return found["tokens"] if (found["heldout"], found["eval_steps"]) == (heldout_id, eval_steps) else None


def store(workdir: pathlib.Path, tokens: int, heldout_id: str, eval_steps: int) -> None:
    """Writes how many tokens an evaluation takes to the workdir.

    Args:
        workdir: where.
        tokens: as measured.
        heldout_id: identifies the text.
        eval_steps: steps between two evaluations, on which the number depends.
    """
    values = {"tokens": tokens, "heldout": heldout_id, "eval_steps": eval_steps}
    staging.write_file(workdir / FILE, (json.dumps(values) + "\n").encode())


def forget_if_asked(workdir: str | os.PathLike, assignments: Iterable[str]) -> None:
    """Removes what `store` wrote to `workdir` if the last of `assignments` to `train.eval_tokens` is null."""
    pairs = [one.partition("=")[::2] for one in assignments]
    if [value.strip() for key, value in pairs if key == "train.eval_tokens"][-1:] == ["null"]:
        pathlib.Path(workdir, FILE).unlink(missing_ok=True)


def text_id(records: Records, *more: str) -> str:
    """Returns a checksum of the text of `records`, and of what else is given."""
    shards = [shard["sha256"] for shard in records.info["shards"]]
    return hashlib.sha256(" ".join([*shards, *more]).encode()).hexdigest()
