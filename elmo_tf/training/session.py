"""A training in progress: its state, and how it is restored, saved and evaluated."""

import contextlib
import dataclasses
import hashlib
import logging
from collections.abc import Generator

from elmo_tf.errors import InputError, renamed
from elmo_tf.records.record_folder import Records
from elmo_tf.records.windows import Position, Window, Windows, prefetch
from elmo_tf.training import checkpoints, metrics_file, resources, snapshots
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.signals import Interrupt
from elmo_tf.training.snapshots import Progress
from elmo_tf.training.step import Trainer
from elmo_tf.training.workers import Workers

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass
class Session:
    """One workdir, its trainer, and how far they have come.

    All workers have to call these at the same step: `restore`, `save`, `evaluate`, `stopping`.
    """

    workdir: checkpoints.Workdir
    trainer: Trainer
    records: Records
    heldout: Records | None
    workers: Workers
    interrupt: Interrupt
    step: int = 0
    saved_step: int | None = None
    position: Position | None = None
    asked_to_stop: bool = False
    out_of_patience: bool = False

    def __post_init__(self):
        self._evaluator = Evaluator(self.trainer.bilm)

    @property
    def tokens_per_step(self) -> int:
        """Tokens per step, sentence boundaries included, each counted once for both directions."""
        return self.trainer.batch_size * self.trainer.config.unroll_steps

    @property
    def steps_per_epoch(self) -> float:
        """Steps per pass over the corpus, which predicts every word and one boundary per sentence."""
        return (self.records.info["tokens"] + self.records.info["sentences"]) / self.tokens_per_step

    @property
    def data_id(self) -> str:
        """Identifies the records and their order, to which a checkpoint's position belongs."""
        return _text_id(self.records, str(self.trainer.config.seed))

    @property
    def at_checkpoint(self) -> bool:
        """Whether a checkpoint is due at this step."""
        return self.step % self.trainer.config.checkpoint_steps == 0

    def restore(self) -> None:
        """Restores the newest intact checkpoint, if there is one."""
        progress = checkpoints.load(self.workdir, self.trainer.bilm, self.trainer.optimizer)
        self.workers.agree("checkpoint", -1 if progress is None else progress.step)
        if progress is not None:
            self._check(progress)
            if progress.states is not None:
                self.trainer.set_states(progress.states)
            self.step = self.saved_step = progress.step
            self.position = progress.position
        if self.workers.is_chief:
            checkpoints.update_config(self.workdir)

    def windows(self, last_step: int) -> Generator[Window, None, None]:
        """Yields the window of each step up to `last_step`, `position` being the one after it; ends when `stopping`."""
        config, max_chars = self.trainer.config, self.workdir.config.model.char_cnn.max_chars_per_token
        windows = Windows(
            self.records, self.trainer.batch_size, config.unroll_steps, max_chars, config.seed, position=self.position
        )
        made = prefetch(iter(windows), interrupted=self._interrupted)
        source = checkpoints.folder_of(self.workdir, self.step) / snapshots.PROGRESS_FILE
        with renamed(records="data", position=str(source)), contextlib.closing(made) as ready:
            while not self.stopping() and self.step < last_step:
                following = next(ready, None)
                if following is not None:
                    window, self.position = following
                    yield window

    def warn_of_little_space(self, last_step: int) -> None:
        """Warns if the checkpoints up to `last_step` do not fit on the disk."""
        config = self.trainer.config
        states = self.trainer.bilm.zero_states(self.trainer.batch_size)
        size = snapshots.num_bytes(self.trainer.bilm, self.trainer.optimizer, states)
        kept = config.keep_checkpoints + (self.heldout is not None)
        saves = -(-last_step // config.checkpoint_steps) - self.step // config.checkpoint_steps
        more = min(saves, max(1, kept + 1 - len(checkpoints.steps(self.workdir))))
        resources.warn_of_little_space(self.workdir.path, size, more, kept)

    def save(self, monitor: Monitor, needed: bool) -> None:
        """Saves a checkpoint, after checking that all losses so far are finite.

        Raises:
            OSError: if it cannot be written and is `needed`; otherwise that is a warning.
        """
        monitor.flush(sync=True)
        progress = Progress(self.step, self.position, self.data_id, self.trainer.gathered_states())
        if self.workers.is_chief:
            try:
                checkpoints.save(self.workdir, self.trainer.bilm, self.trainer.optimizer, progress)
            except OSError as error:
                newest = "there is none" if self.saved_step is None else f"the newest is of step {self.saved_step:,}"
                message = f"the checkpoint of step {self.step:,} cannot be written: {error}; {newest}"
                if needed:
                    raise OSError(message) from error
                _log.warning("warning: %s; training continues", message)
                return
        self.saved_step = self.step

    def evaluate(self, monitor: Monitor) -> None:
        """Evaluates on the held-out text, if there is one and these weights were not evaluated before."""
        if self.heldout is None:
            return
        config, found = self.trainer.config, self.evaluations()
        if self.workers.is_chief and (not found or found[-1]["step"] != self.step):
            with renamed(records="heldout"):
                result = self._evaluator(
                    self.heldout, config.batch_size, config.unroll_steps, interrupted=lambda: self.interrupt.requested
                )
            if result is not None:
                products = f", {config.precision} products (`elmo-tf evaluate`: float32)"
                note = "" if config.precision == "float32" else products
                monitor.record_evaluation(result, _text_id(self.heldout), note)
        waited = metrics_file.waited(self.evaluations())
        self.out_of_patience = self.workers.any(self.workers.is_chief and 0 < config.patience <= waited)
        monitor.resume_clock()

    def evaluations(self) -> list[dict]:
        """Returns the evaluations on this held-out text so far."""
        heldout = self.heldout and _text_id(self.heldout)
        return [one for one in metrics_file.evaluations(self.workdir.metrics) if one["heldout"] == heldout]

    def stopping(self) -> bool:
        """Whether to stop before the next step."""
        # Among several workers, asking takes a round trip and waits for the device.
        if self.workers.count == 1 or self.step % self.trainer.config.log_steps == 0:
            self.asked_to_stop = self.workers.any(self.interrupt.requested)
        return self.asked_to_stop or self.out_of_patience

    def _interrupted(self) -> bool:
        """Whether to stop waiting for data; several workers stop at the same step, so none of them stops here."""
        return self.interrupt.requested and self.workers.count == 1

    def _check(self, progress: Progress) -> None:
        """Raises `InputError` if a checkpoint belongs to another training."""
        if progress.data_id not in (None, self.data_id):
            raise InputError(
                "data, train.seed",
                "the records and seed that the workdir was trained with so far",
                f"others: {self.records.path}; `elmo-tf finetune` trains on other text",
            )
        if progress.states is not None and len(progress.states[0][0][0]) != self.trainer.batch_size:
            config = self.trainer.config
            raise InputError(
                "train.batch_size, train.accumulation_steps, strategy",
                f"{len(progress.states[0][0][0])} streams in all, as in the checkpoint",
                f"{config.batch_size} x {config.accumulation_steps} x {self.trainer.strategy.num_replicas_in_sync}",
            )


def _text_id(records: Records, *more: str) -> str:
    shards = [shard["sha256"] for shard in records.info["shards"]]
    return hashlib.sha256(" ".join([*shards, *more]).encode()).hexdigest()
