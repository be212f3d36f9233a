"""A training in progress: its state, and how it is restored, saved and evaluated."""

import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import Generator

from elmo_tf.config import TrainConfig
from elmo_tf.errors import renamed
from elmo_tf.records.record_folder import Records
from elmo_tf.records.windows import Position, Window, Windows, prefetch
from elmo_tf.training import heldout, precision, resuming
from elmo_tf.training.epochs import Epochs
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.processes import OneProcess
from elmo_tf.training.signals import Interrupt
from elmo_tf.training.step import Trainer
from elmo_tf.workdir import checkpoint_files, checkpoints, metrics_file, space
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.checkpoint_writer import CheckpointWriter
from elmo_tf.workdir.folder import Workdir, update_config

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass
class TrainingRun:
    """One workdir, its trainer, and how far they have come.

    All workers must call these at the same step: `restore`, `at_checkpoint`, `save`, `is_saved`, `evaluate`,
    `stopping`.
    """

    workdir: Workdir
    trainer: Trainer
    records: Records
    heldout_records: Records | None
    workers: OneProcess
    interrupt: Interrupt
    stored_config: TrainConfig  # the recipe of the run so far
    step: int = 0
    position: Position | None = None
    offset_step: int = 0  # since when a step has so many tokens; see `Progress`
    epoch_offset: float = 0.0
    asked_to_stop: bool = False
    out_of_patience: bool = False

    metrics: metrics_file.MetricsFile | None = None  # of the first worker, once it is opened
    writer: CheckpointWriter | None = None  # once the newest checkpoint is restored
    evaluating_seconds: float = 0.0
    saving_seconds: float = 0.0  # blocked on checkpoint writes
    _described_evaluation: bool = False  # whether the log says what an evaluation takes

    def __post_init__(self):
        self._started_at = self._last_save = time.monotonic()
        if self.heldout_records is not None:
            self._evaluator = Evaluator(self.trainer.bilm, self.trainer.strategy)
            self._parts = heldout.parts(self.heldout_records, self.trainer.config)

    @property
    def epochs(self) -> Epochs:
        """How steps and passes over the text belong together."""
        tokens_per_step = self.trainer.batch_size * self.trainer.config.unroll_steps
        return Epochs(heldout.num_tokens(self.records), tokens_per_step, self.offset_step, self.epoch_offset)

    @property
    def data_id(self) -> str:
        """Identifies the records and their order, to which a checkpoint's position belongs."""
        return heldout.text_id(self.records, self.trainer.config.seed)

    def at_checkpoint(self) -> bool:
        """Returns whether a checkpoint is due at this step; all workers must call this."""
        config = self.trainer.config
        if self.at_evaluation:
            return True
        if not config.checkpoint_minutes:
            return self.step % config.checkpoint_steps == 0
        # Among several workers, the first one's clock decides, and asking it takes a round trip.
        asked = self.workers.count == 1 or self.step % config.log_steps == 0
        return asked and bool(self.workers.first(time.monotonic() - self._last_save >= 60 * config.checkpoint_minutes))

    @property
    def at_evaluation(self) -> bool:
        """Whether an evaluation is due at this step; a checkpoint is, too, because it may be the best."""
        return self.heldout_records is not None and self._eval_steps > 0 and self.step % self._eval_steps == 0

    @property
    def _eval_steps(self) -> int:
        config = self.trainer.config
        return config.checkpoint_steps if config.eval_steps is None else config.eval_steps

    def restore(self) -> None:
        """Restores the newest intact checkpoint, if there is one; all workers that of the first."""
        load = functools.partial(checkpoints.load, self.workdir, self.trainer.bilm, self.trainer.optimizer.slots)
        progress = load() if self.workers.is_chief else None
        step = self.workers.first(-1 if progress is None else progress.step)
        if step >= 0 and not self.workers.is_chief:
            self.workers.see(checkpoints.folder_of(self.workdir, step) / checkpoint_files.MANIFEST_FILE)
            progress = load(str(step))
        if progress is not None:
            resuming.check(progress, self.data_id, self.records, self.stored_config, self.trainer)
            progress = resuming.continued(
                progress, self.stored_config, self.trainer, self.epochs, log=self.workers.is_chief
            )
            if progress.states is not None:
                self.trainer.set_states(progress.states)
            self.step, self.position = progress.step, progress.position
            self.offset_step, self.epoch_offset = progress.offset_step, progress.epoch_offset
        self.writer = CheckpointWriter(self.workdir, None if progress is None else progress.step)
        if self.workers.is_chief:
            update_config(self.workdir)

    def windows(self, last_step: int) -> Generator[Window, None, None]:
        """Yields the window of each step up to `last_step`, `position` being the one after it; ends when `stopping`."""
        config, max_chars = self.trainer.config, self.workdir.config.model.char_cnn.max_chars_per_token
        windows = Windows(
            self.records,
            self.trainer.batch_size,
            config.unroll_steps,
            max_chars,
            config.seed,
            position=self.position,
            rows=self.trainer.local_rows,
        )
        made = prefetch(iter(windows), interrupted=self._interrupted)
        source = checkpoints.folder_of(self.workdir, self.step) / checkpoint_files.PROGRESS_FILE
        with renamed(records="data", position=str(source)), contextlib.closing(made) as ready:
            while not self.stopping() and self.step < last_step:
                following = next(ready, None)
                if following is not None:
                    window, self.position = following
                    yield window

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint on the disk; in memory it is as large while it is written."""
        states = self.trainer.bilm.zero_states(self.trainer.batch_size)
        return checkpoint_files.num_bytes(self.trainer.bilm, self.trainer.optimizer.slots, states)

    def warn_of_little_space(self, last_step: int) -> None:
        """Warns if the checkpoints up to `last_step` do not fit on the disk."""
        config, size = self.trainer.config, self.checkpoint_bytes
        # With held-out text, the best one of the parts that were evaluated, and the best one of the whole text.
        kept = config.keep_checkpoints + 2 * (self.heldout_records is not None)
        every = 1 if config.checkpoint_minutes else config.checkpoint_steps
        if self.heldout_records is not None and self._eval_steps:
            every = min(every, self._eval_steps)
        saves = -(-last_step // every) - self.step // every
        more = min(saves, max(1, kept + 1 - len(checkpoints.steps(self.workdir))))
        space.warn_of_little_space(self.workdir.path, size, more, kept)

    def warn_of_other_evaluations(self) -> None:
        """Warns if earlier evaluations cannot be compared with those to come."""
        if self.heldout_records is not None and self.metrics.evaluations and not self.evaluations():
            _log.warning(
                "warning: earlier evaluations were of another held-out text, another part of it, or another number of "
                "streams (train.batch_size); the best checkpoint and train.patience go by those from here on"
            )

    def save(self, monitor: Monitor, needed: bool) -> None:
        """Saves a checkpoint in the background, after checking that all losses so far are finite.

        The one before has to be written first. All that training waits for is that, and a copy of the variables.

        Args:
            monitor: has the losses.
            needed: whether to wait until it is written.

        Raises:
            OSError: if it cannot be written and is `needed`; otherwise that is a warning.
        """
        started_at = time.monotonic()
        monitor.flush(sync=True)
        states, failed = self.trainer.gathered_states(), None
        if self.workers.is_chief:
            self.finish_saving()
            counted = self.trainer.config.unroll_steps, self.offset_step, self.epoch_offset
            progress = Progress(self.step, self.position, self.data_id, states, *counted)
            snapshot = checkpoint_files.take_snapshot(self.trainer.bilm, self.trainer.optimizer.slots, progress)
            self.writer.start(snapshot, self.metrics.evaluations)
            if needed:
                try:
                    self.writer.finish()
                except OSError as error:
                    failed = OSError(f"{error}; {self._newest}")
        if needed and self.workers.any(failed is not None):
            raise failed or ConnectionError(f"{self.workers.me}: the first worker cannot write the last checkpoint")
        self._last_save = time.monotonic()
        self.saving_seconds += self._last_save - started_at
        monitor.resume_clock()

    def finish_saving(self) -> None:
        """Waits for the checkpoint that is being written; warns if that failed."""
        try:
            self.writer.finish()
        except OSError as error:
            _log.warning("warning: %s; %s; training continues", error, self._newest)

    def close(self) -> None:
        """Waits for the checkpoint that is being written."""
        if self.writer is not None:
            self.finish_saving()

    def is_saved(self) -> bool:
        """Returns whether there is a checkpoint of this step, once it is written; all workers must call this."""
        self.finish_saving()
        return bool(self.workers.first(self.writer.saved_step == self.step))

    @property
    def _newest(self) -> str:
        saved = self.writer.saved_step
        return "there is none" if saved is None else f"the newest is of step {saved:,}"

    def evaluate(self, monitor: Monitor, final: bool = False) -> None:
        """Evaluates on the held-out text, if there is one, unless these weights were evaluated before.

        Args:
            monitor: shows the result.
            final: whether this is the last evaluation, which takes the whole text.
        """
        if self.heldout_records is None:
            return
        started_at, config = time.monotonic(), self.trainer.config
        known = {one["heldout"] for one in self.evaluations() if one["step"] == self.step}
        parts = self._parts if final else self._parts[:1]
        missing = self.workers.gathered([part.id not in known for part in parts])[0]  # as the first worker knows them
        parts = [part for part, is_missing in zip(parts, missing, strict=True) if is_missing]
        with renamed(records="heldout"):
            found = self._evaluator.parts(
                self.heldout_records,
                [part.windows for part in parts],
                *(config.batch_size, config.unroll_steps, lambda: self.interrupt.requested),
            )
        if len(found) < len(parts):
            self.asked_to_stop = True  # one of the workers is; the evaluation is made when the run resumes
        for part, result in zip(parts, found, strict=False) if self.workers.is_chief else ():
            note = "" if part.windows is None else f", of the first {result.tokens:,} tokens"
            monitor.record_evaluation(result, part.id, note + _products_note(config.precision), part != self._parts[0])
        waited = metrics_file.evaluations_since_best(self.evaluations())
        self.out_of_patience = self.workers.any(self.workers.is_chief and 0 < config.patience <= waited)
        seconds = time.monotonic() - started_at
        if found and not final and self.workers.is_chief and not self._described_evaluation:
            self._described_evaluation = True
            _log.info(
                "an evaluation takes %.1f s, the first one's graph included: %s of %s held-out tokens "
                "(train.eval_tokens), every %s steps (train.eval_steps); the last one takes all",
                *(seconds, f"{found[0].tokens:,}", f"{heldout.num_tokens(self.heldout_records):,}"),
                f"{self._eval_steps:,}",
            )
        self.evaluating_seconds += seconds
        monitor.resume_clock()

    def evaluations(self) -> list[dict]:
        """Returns the evaluations on this held-out text so far; none in all workers but the first."""
        if self.metrics is None or self.heldout_records is None:
            return []
        ids = [part.id for part in self._parts]
        return [one for one in self.metrics.evaluations if one["heldout"] in ids]

    def shares(self) -> str:
        """Returns, for a line of the log, which shares of the time since the start evaluations and checkpoints took."""
        percent = (time.monotonic() - self._started_at) / 100
        evaluating, saving = self.evaluating_seconds / percent, self.saving_seconds / percent
        return f"evaluations took {evaluating:.1f} % of the time, waiting for checkpoints {saving:.1f} %"

    def stopping(self) -> bool:
        """Whether to stop before the next step."""
        if self.writer is not None and not self.writer.busy:
            self.finish_saving()
        # Among several workers, asking takes a round trip and waits for the device.
        if self.workers.count == 1 or self.step % self.trainer.config.log_steps == 0:
            self.asked_to_stop = self.workers.any(self.interrupt.requested)
        return self.asked_to_stop or self.out_of_patience

    def _interrupted(self) -> bool:
        """Whether to stop waiting for data; several workers stop at the same step, so none of them stops here."""
        return self.interrupt.requested and self.workers.count == 1


def _products_note(training_precision: str) -> str:
    """Returns, for the line of an evaluation, the products' precision if it is not plain float32."""
    here, evaluate = map(precision.of_products, (training_precision, "float32"))
    note = "" if here == "float32" else f", {here} products"
    return note if here == evaluate else f"{note} (`elmo-tf evaluate`: {evaluate})"
