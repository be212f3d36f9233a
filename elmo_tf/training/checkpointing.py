"""When a training saves checkpoints, and how it resumes from one."""

import dataclasses
import logging
import shutil
import time
from collections.abc import Sequence

from elmo_tf.config import TrainConfig
from elmo_tf.training import resuming
from elmo_tf.training.coordination import OneWorker
from elmo_tf.training.state import TrainState
from elmo_tf.workdir import checkpoint_files, checkpoints, space
from elmo_tf.workdir.checkpoint_writer import CheckpointWriter
from elmo_tf.workdir.folder import Workdir
from elmo_tf.workdir.metrics_file import HeldoutLine

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass
class Checkpointing:
    """Restores a training's state and saves it in the background; the chief writes.

    All workers must call `restore`, `due`, `save` and `is_saved` at the same step.
    """

    workdir: Workdir
    state: TrainState
    workers: OneWorker
    seconds: float = 0.0  # time blocked on checkpoint writes

    def __post_init__(self) -> None:
        self._trainer = self.state.trainer
        self._writer = CheckpointWriter(self.workdir)
        self._last_save = time.monotonic()

    def restore(self, stored_config: TrainConfig) -> None:
        """Restores the newest intact checkpoint, if there is one.

        Args:
            stored_config: the recipe of the workdir so far.

        Raises:
            InputError: if the checkpoint belongs to another training.
        """
        state, bilm, slots = self.state, self._trainer.bilm, self._trainer.optimizer.slots
        progress = self.workers.restored(
            lambda checkpoint: checkpoints.load(self.workdir, bilm, slots, checkpoint),
            lambda step: checkpoints.folder_of(self.workdir, step) / checkpoint_files.MANIFEST_FILE,
        )
        if progress is not None:
            self._writer.saved_step = progress.step
            resuming.check(progress, state.data_id, state.records, stored_config, self._trainer)
            state.set_progress(resuming.continued(progress, stored_config, self._trainer, state.epochs))

    @property
    def saved_step(self) -> int | None:
        """Step of the newest complete checkpoint; None if there is none."""
        return self._writer.saved_step

    @property
    def num_bytes(self) -> int:
        """Size of a checkpoint on disk, and in memory while it is written."""
        bilm = self._trainer.bilm
        states = bilm.zero_states(self._trainer.batch_size)
        return checkpoint_files.num_bytes(bilm, self._trainer.optimizer.slots, states)

    def due(self) -> bool:
        """Returns whether a checkpoint is due at this step, evaluations aside."""
        config, step = self._trainer.config, self.state.step
        if not config.checkpoint_minutes:
            return step % config.checkpoint_steps == 0
        # Among several workers, the chief's clock decides.
        elapsed = time.monotonic() - self._last_save
        late = self.workers.is_chief and elapsed >= 60 * config.checkpoint_minutes
        return self.workers.any_every(config.log_steps, step, late)

    def save(self, evaluations: Sequence[HeldoutLine], needed: bool) -> None:
        """Saves a checkpoint in the background, once the previous one is written.

        Args:
            evaluations: all evaluations of the workdir so far; only the chief needs them.
            needed: whether to wait until it is written.

        Raises:
            OSError: if it is `needed` and cannot be written; otherwise that is a warning.
        """
        started_at = time.monotonic()
        progress = self.state.progress()
        if self.workers.is_chief:
            self.finish()
            slots = self._trainer.optimizer.slots
            self._writer.start(checkpoint_files.take_snapshot(self._trainer.bilm, slots, progress), evaluations)
            if needed:
                try:
                    self._writer.finish()
                except OSError as error:
                    raise OSError(f"{error}; {self._newest}") from error
        self._last_save = time.monotonic()
        self.seconds += self._last_save - started_at

    def is_saved(self) -> bool:
        """Returns whether there is a checkpoint of this step; waits for one that is being written."""
        self.finish()
        return self.workers.any(self.workers.is_chief and self.saved_step == self.state.step)

    def poll(self) -> None:
        """Warns if the last checkpoint could not be written; does not wait."""
        if not self._writer.busy:
            self.finish()

    def finish(self) -> None:
        """Waits for the checkpoint that is being written, if any; warns if that failed."""
        try:
            self._writer.finish()
        except OSError as error:
            _log.warning("warning: %s; %s; training continues", error, self._newest)

    close = finish

    @property
    def _newest(self) -> str:
        return "there is none" if self.saved_step is None else f"the newest is of step {self.saved_step:,}"

    def warn_of_little_space(self, last_step: int, eval_steps: int | None) -> None:
        """Warns if the checkpoints up to `last_step` do not fit on the disk.

        Args:
            last_step: the last step of the run.
            eval_steps: steps between evaluations; None: there is no held-out text.
        """
        config = self._trainer.config
        # With held-out text, also the best by the evaluated part and the best by the whole text.
        kept = config.keep_checkpoints + 2 * (eval_steps is not None)
        every = min(1 if config.checkpoint_minutes else config.checkpoint_steps, eval_steps or last_step)
        saves = -(-last_step // every) - self.state.step // every
        more = min(saves, max(1, kept + 1 - len(checkpoints.steps(self.workdir))))
        free = shutil.disk_usage(self.workdir.path).free
        if more * self.num_bytes > free:
            sizes = [space.megabytes(size) for size in (self.num_bytes, more * self.num_bytes, free)]
            _log.warning(
                "warning: a checkpoint takes %s MB; %d more (%d are kept, plus one being written) take %s MB, but only "
                "%s MB are free in %s",
                *(sizes[0], more, kept, *sizes[1:], self.workdir.path),
            )
