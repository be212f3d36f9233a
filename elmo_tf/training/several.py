"""Training in several processes: what they decide together, and what only the first of them, the chief, does.

Each class takes part in a `training.loop.Run`. All processes call the same methods at the same steps.
"""

import contextlib
import dataclasses
import hashlib
import pathlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.records.record_folder import Records
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.heldout import HeldoutEvaluation, Part
from elmo_tf.training.loop import Run
from elmo_tf.training.monitor import Monitor, checked_values
from elmo_tf.training.signals import Stopped
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import StepResult
from elmo_tf.training.workers import Workers
from elmo_tf.workdir import checkpoint_files, checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import CONFIG_FILE, Workdir, open_workdir
from elmo_tf.workdir.metrics_file import HeldoutLine

_STOP_CHECK_INTERVAL = 20  # windows of an evaluation between collective stop checks


@dataclasses.dataclass
class SharedRun(Run):
    """A run in one of several processes."""

    def __post_init__(self) -> None:
        self.workers = Workers(self.strategy)

    def train(self) -> Workdir:
        with self.workers.watched():
            try:
                workdir = super().train()
            except Stopped:
                self.workers.wait()
                raise
            self.workers.wait()
        return workdir

    @contextlib.contextmanager
    def opened_workdir(self) -> Iterator[Workdir]:
        """Yields the workdir, which the chief makes and locks."""
        with contextlib.ExitStack() as stack:
            if self.workers.is_chief:
                stack.enter_context(super().opened_workdir())
            self.workers.wait()
            self.workers.wait_for_file(pathlib.Path(self.path, CONFIG_FILE))
            arguments = {"data": self.records, "heldout": self.heldout_records}
            check_same(self.workers, **arguments, steps=self.config.train.steps, config=self.config)
            yield open_workdir(self.path)

    def new_checkpointing(self, workdir: Workdir) -> Checkpointing:
        return SharedCheckpointing(workdir, self.state, self.workers)

    def new_monitor(self, workdir: Workdir) -> Monitor:
        return super().new_monitor(workdir) if self.workers.is_chief else QuietMonitor(self.state, self.last_step)

    def new_evaluation(self) -> HeldoutEvaluation:
        trainer = self.state.trainer
        evaluator = SharedEvaluator(trainer.bilm, trainer.strategy, self.requested, self.workers)
        return SharedEvaluation(self.heldout_records, trainer.config, self.monitor, evaluator, self.workers)

    def info(self, message: str, *arguments: object) -> None:
        if self.workers.is_chief:
            super().info(message, *arguments)

    def warn(self) -> None:
        if self.workers.is_chief:
            super().warn()

    def stops_waiting(self) -> bool:
        return False  # all stop at the same step

    def stop_requested(self, at_the_end: bool = False) -> bool:
        if at_the_end:
            return self.workers.any(self.asked_to_stop or self.requested())
        return self.workers.any_every(self.state.trainer.config.log_steps, self.state.step, self.requested())


@dataclasses.dataclass
class SharedCheckpointing(Checkpointing):
    """Checkpoints that the chief writes and all read."""

    workers: Workers

    def load(self, checkpoint: str = checkpoints.LATEST) -> Progress | None:
        progress = super().load(checkpoint) if self.workers.is_chief else None
        # The others restore what the chief has restored.
        step = int(self.workers.gathered([-1 if progress is None else progress.step])[0, 0])
        if not self.workers.is_chief and step >= 0:
            folder = checkpoints.folder_of(self.workdir, step)
            self.workers.wait_for_file(folder / checkpoint_files.MANIFEST_FILE)
            progress = super().load(str(step))
        return progress

    def time_is_up(self) -> bool:
        # The chief's clock decides.
        is_up = self.workers.is_chief and super().time_is_up()
        return self.workers.any_every(self.state.trainer.config.log_steps, self.state.step, is_up)

    def write(self, progress: Progress, evaluations: Sequence[HeldoutLine], must_succeed: bool) -> None:
        if self.workers.is_chief:
            super().write(progress, evaluations, must_succeed)

    def is_saved(self) -> bool:
        return self.workers.chief_says(super().is_saved())


@dataclasses.dataclass
class SharedEvaluation(HeldoutEvaluation):
    """An evaluation by all processes, each on its streams; the chief knows the earlier ones."""

    workers: Workers

    def unevaluated(self, parts: list[Part], step: int) -> list[Part]:
        due_parts = super().unevaluated(parts, step)  # the chief's are right
        return [part for part in parts if self.workers.chief_says(part in due_parts)]

    def is_out_of_patience(self) -> bool:
        return self.workers.chief_says(super().is_out_of_patience())


class SharedEvaluator(Evaluator):
    """Evaluates on the streams of all processes."""

    def __init__(self, bilm: BiLM, strategy: tf.distribute.Strategy, interrupted: Callable[[], bool], workers: Workers):
        super().__init__(bilm, strategy, interrupted)
        self._workers = workers
        self.shows_progress = workers.is_chief

    def total(self, sums: np.ndarray) -> np.ndarray:
        return self._workers.gathered(sums).sum(axis=0)

    def stops_after(self, number: int | None) -> bool:
        if number is None:
            return self._workers.any(self.interrupted())
        return self._workers.any_every(_STOP_CHECK_INTERVAL, number, self.interrupted())

    def stops_waiting(self) -> bool:
        return False  # all stop at the same window


class QuietMonitor(Monitor):
    """The monitor of all processes but the chief: checks losses, and writes nothing."""

    def __init__(self, state: TrainState, last_step: int):
        self._log_steps, self._last_step = state.trainer.config.log_steps, last_step
        self._step = state.step
        self._pending: list[StepResult] = []

    @property
    def evaluations(self) -> list[HeldoutLine]:
        return []

    def _nothing(self, *_: object) -> None:
        pass

    before_step = record_evaluation = resume_clock = close = _nothing  # type: ignore[assignment]

    def record(self, result: StepResult, learning_rate: float) -> None:
        self._step += 1
        self._pending.append(result)
        if len(self._pending) == self._log_steps or self._step == self._last_step:
            self.flush()

    def flush(self, sync: bool = False) -> None:
        if self._pending:
            checked_values(self._pending, self._step)
            self._pending.clear()


def check_same(workers: Workers, **arguments: Records | Config | int | None) -> None:
    """Raises `InputError` on all workers if their arguments differ; otherwise they would wait for each other."""

    def digest(value: Records | Config | int | None) -> bytes:
        text = value.text_id() if isinstance(value, Records) else repr(value)
        return hashlib.sha256(text.encode()).digest()

    # Bytes, because a float64 holds every number up to 255 exactly.
    digests = [np.frombuffer(digest(value), np.uint8) for value in arguments.values()]
    gathered = workers.gathered(np.concatenate(digests)).reshape(-1, len(arguments), len(digests[0]))
    for name, by_worker in zip(arguments, gathered.transpose(1, 0, 2), strict=True):
        different = [str(index) for index, row in enumerate(by_worker) if (row != by_worker[0]).any()]
        if different:
            raise InputError(name, f"workers 0 and {', '.join(different)} have different values; all need the same")
