"""When a training saves checkpoints, and how it resumes."""

import logging
import shutil
import time
from collections.abc import Sequence
from concurrent import futures

from elmo_tf.config import TrainConfig
from elmo_tf.training.state import TrainState, resumed
from elmo_tf.training.workers import Alone, Workers
from elmo_tf.workdir import checkpoint_files, checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir
from elmo_tf.workdir.metrics_file import HeldoutLine

_log = logging.getLogger("elmo_tf")


class Checkpointing:
    """Restores a training's state, and saves it in the background. The chief writes; all workers read.

    Attributes:
        saved_step: of the newest complete checkpoint; None: there is none.
        seconds: that training was blocked on checkpoint writes.
    """

    def __init__(self, workdir: Workdir, state: TrainState, workers: Alone | Workers):
        self.saved_step: int | None = None
        self.seconds = 0.0
        self._workdir = workdir
        self._state = state
        self._workers = workers
        self._trainer = state.trainer
        self._pool = futures.ThreadPoolExecutor(1, "checkpoint")
        self._writing: tuple[int, futures.Future] | None = None  # the step and the write in progress
        self._last_save = time.monotonic()

    def restore(self, stored_config: TrainConfig) -> None:
        """Restores the newest intact checkpoint, if any; `InputError` if it belongs to another training.

        `stored_config` is the recipe of the workdir so far.
        """
        progress = self._load(checkpoints.LATEST) if self._workers.is_chief else None
        # The others restore the same checkpoint as the chief.
        step = int(self._workers.chief(-1 if progress is None else progress.step))
        if step >= 0 and not self._workers.is_chief:
            self._workers.wait_for_file(checkpoints.folder_of(self._workdir, step) / checkpoint_files.MANIFEST_FILE)
            progress = self._load(str(step))
        if progress is not None:
            self.saved_step = step
            self._state.resume(resumed(progress, stored_config, self._state))

    def _load(self, checkpoint: str) -> Progress | None:
        return checkpoints.load(self._workdir, self._trainer.bilm, self._trainer.optimizer.slots, checkpoint)

    @property
    def num_bytes(self) -> int:
        """Size of a checkpoint on disk, and in memory while it is written."""
        bilm = self._trainer.bilm
        states = bilm.zero_states(self._trainer.batch_size)
        return checkpoint_files.num_bytes(bilm, self._trainer.optimizer.slots, states)

    def due(self) -> bool:
        """Returns whether a checkpoint is due at this step, evaluations aside."""
        config, step = self._trainer.config, self._state.step
        if not config.checkpoint_minutes:
            return step % config.checkpoint_steps == 0
        age = time.monotonic() - self._last_save
        # The chief's clock decides.
        is_time = self._workers.is_chief and age >= 60 * config.checkpoint_minutes
        return self._workers.any_every(config.log_steps, step, is_time)

    def save(self, evaluations: Sequence[HeldoutLine], must_succeed: bool) -> None:
        """Saves a checkpoint in the background, once the previous one is written; all workers must call this.

        If it `must_succeed`, waits until it is written; a failure is then an `OSError`, otherwise a warning.
        `evaluations` are all of the workdir so far.
        """
        started_at = time.monotonic()
        progress = self._state.saved()
        if self._workers.is_chief:
            self.finish()
            snapshot = checkpoint_files.take_snapshot(self._trainer.bilm, self._trainer.optimizer.slots, progress)
            task = self._pool.submit(checkpoints.store, self._workdir, snapshot, list(evaluations))
            self._writing = progress.step, task
            if must_succeed:
                self.finish(must_succeed=True)
        self._last_save = time.monotonic()
        self.seconds += self._last_save - started_at

    def is_saved(self) -> bool:
        """Returns whether there is a checkpoint of this step; waits for one that is being written."""
        self.finish()
        return bool(self._workers.chief(self.saved_step == self._state.step))

    def poll(self) -> None:
        """Warns if the last checkpoint could not be written; does not wait."""
        if self._writing is not None and self._writing[1].done():
            self.finish()

    def finish(self, must_succeed: bool = False) -> None:
        """Waits for the checkpoint that is being written, if any; on failure warns, or raises if it `must_succeed`."""
        if self._writing is None:
            return
        step, task = self._writing
        futures.wait([task])  # if an interrupt ends this, `close` still waits
        self._writing = None
        try:
            task.result()
            self.saved_step = step
        except OSError as error:
            newest = "there is no other" if self.saved_step is None else f"the newest is of step {self.saved_step:,}"
            message = f"the checkpoint of step {step:,} cannot be written: {error}; {newest}"
            if must_succeed:
                raise OSError(message) from error
            _log.warning("warning: %s; training continues", message)

    close = finish

    def warn_of_little_space(self, evaluated: bool) -> None:
        """Warns if the checkpoints to keep, with the best ones if the run is `evaluated`, do not fit on the disk."""
        # Two are kept as best, by the evaluated part and by the whole text; another exists while it is written.
        kept = self._trainer.config.keep_checkpoints + 2 * evaluated
        num_bytes = max(1, kept + 1 - len(checkpoints.steps(self._workdir))) * self.num_bytes
        free = shutil.disk_usage(self._workdir.path).free
        if num_bytes > free:
            _log.warning(
                "warning: the checkpoints to keep (%d, and one being written) need %.1f MB more, but only %.1f MB are "
                "free in %s",
                kept,
                num_bytes / 1e6,
                free / 1e6,
                self._workdir.path,
            )
