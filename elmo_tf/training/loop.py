"""The training loop: restore, step, log, evaluate, save."""

import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Callable

import keras
import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.errors import InputError, memory_explained
from elmo_tf.files.progress import counted
from elmo_tf.records import record_folder
from elmo_tf.training import coordination, devices, precision, preparation
from elmo_tf.training.board import Board
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.coordination import OneWorker
from elmo_tf.training.diagnostics import Diagnostics
from elmo_tf.training.heldout import HeldoutEvaluation, check_patience
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.schedule import learning_rate
from elmo_tf.training.signals import Interrupt
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import Trainer
from elmo_tf.workdir.folder import Workdir, update_config
from elmo_tf.workdir.metrics_file import MetricsFile, MetricsLine, best, comparable

# Settings to change when memory runs out.
MEMORY_SETTINGS = ("train.batch_size, train.num_sampled, model.lstm.units", "smaller values")

_log = logging.getLogger("elmo_tf")


def train(
    config: Config,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
    profile: bool = False,
    on_record: Callable[[MetricsLine], None] | None = None,
) -> Workdir:
    """Trains a BiLM on `data`, resuming from the newest intact checkpoint of `workdir` if there is one.

    Checkpoints are made every `train.checkpoint_steps` steps or `train.checkpoint_minutes` minutes, and evaluations on
    the first `train.eval_tokens` tokens of `heldout` every `train.eval_steps` steps, with a checkpoint each. At the end
    there is a checkpoint, and an evaluation on all of `heldout`.

    Args:
        config: model and recipe; in an existing workdir, the model must be the same, and the recipe is replaced.
        data: a folder of records to train on.
        workdir: for everything that training writes; made if it does not exist.
        heldout: a folder of records to evaluate on.
        steps: total number of steps, those of earlier runs included; None: `train.epochs` passes over `data`.
        strategy: the devices; None: one replica on each visible GPU, or one on the CPU. All processes of a
            `MultiWorkerMirroredStrategy` call this with the same arguments; the first of them writes.
        profile: whether to trace some steps for TensorBoard.
        on_record: called with each line of `metrics.jsonl`, a dictionary with the losses of a step or an evaluation;
            training waits for it. Steps that a resumed run repeats are passed again. An exception that it raises
            becomes a warning. Only the first of several workers calls it.

    Returns:
        the workdir, with a checkpoint of the last step.

    Raises:
        InputError: if the folders do not fit each other or the configuration, the workdir is in use, the memory is not
            sufficient, or a loss is not finite.
        OSError: if the last checkpoint cannot be written, or another worker has ended.
        KeyboardInterrupt: on SIGINT or SIGTERM, after the current step and a checkpoint.
    """
    if steps is not None and steps < 0:
        raise InputError("steps", "at least 0", steps)
    strategy = strategy or devices.all_gpus()
    workers = coordination.of(strategy)
    records = record_folder.open_folder(data)
    heldout_records = None if heldout is None else record_folder.open_folder(heldout)
    check_patience(config, heldout)
    with contextlib.ExitStack() as stack:
        stack.enter_context(workers.watched())
        stack.enter_context(memory_explained(*MEMORY_SETTINGS))
        stored = stack.enter_context(preparation.opened_workdir(config, workdir, records, heldout_records, workers))
        interrupt = stack.enter_context(Interrupt())
        config = precision.resolved(config, stored.config)
        preparation.check_same(workers, data=records, heldout=heldout_records, config=config, steps=steps)
        opened = dataclasses.replace(stored, config=config, tokenizer=records.info.tokenizer)
        keras.utils.set_random_seed(config.train.seed)
        trainer = Trainer(strategy, config.train, lambda: opened.new_bilm(config.train.precision))
        state = TrainState(trainer, records)
        checkpointing = stack.enter_context(contextlib.closing(Checkpointing(opened, state, workers)))
        checkpointing.restore(stored.config.train)
        last_step = state.epochs.step_after(config.train.epochs) if steps is None else steps
        monitor = _monitor(opened, state, checkpointing, last_step, profile, on_record, workers)
        stack.enter_context(contextlib.closing(monitor))
        evaluation = None
        if heldout_records is not None:
            evaluation = HeldoutEvaluation(heldout_records, trainer, workers, monitor, lambda: interrupt.requested)
        loop = _Loop(workers, interrupt, state, checkpointing, monitor, evaluation, last_step)
        loop.begin()
        windows = state.windows(last_step, loop.interrupted_alone)
        for window, position in stack.enter_context(contextlib.closing(windows)):
            if loop.stopping():
                break
            monitor.before_step(window)
            rate = learning_rate(config.train, state.step, last_step)
            monitor.record(trainer.step(window, state.step, rate), rate)
            state.step, state.position = state.step + 1, position
            evaluating = loop.is_last or loop.evaluation_due
            if evaluating or checkpointing.due():
                loop.save(needed=loop.is_last)
            if evaluating:
                loop.evaluate(final=loop.is_last)
        loop.end()
    return opened


@dataclasses.dataclass
class _Loop:
    """Hooks before, between and after the steps; all workers call them at the same step."""

    workers: OneWorker
    interrupt: Interrupt
    state: TrainState
    checkpointing: Checkpointing
    monitor: Monitor
    heldout: HeldoutEvaluation | None  # None: no evaluations
    last_step: int  # total number of steps
    asked_to_stop: bool = False  # on any worker

    def __post_init__(self) -> None:
        self.first_step, self.started_at = self.state.step, time.monotonic()

    def interrupted_alone(self) -> bool:
        """Whether to stop waiting for data; several workers stop at the same step, so none of them stops here."""
        return self.workers.is_alone and self.interrupt.requested

    @property
    def is_last(self) -> bool:
        """Whether all steps are done."""
        return self.state.step == self.last_step

    @property
    def evaluation_due(self) -> bool:
        """Whether an evaluation is due at this step."""
        return self.heldout is not None and self.heldout.due(self.state.step)

    def begin(self) -> None:
        """Makes the checkpoint and the evaluation of this step that an earlier run did not get to."""
        step = self.state.step
        if self.last_step == 0 and not self.checkpointing.is_saved():
            self.save(needed=True)
        elif step >= self.last_step:
            done = f"step {step:,} is done already, and training ends at step {self.last_step:,}"
            self.workers.info("nothing to do: %s", done)
        elif self.workers.is_chief:
            self.checkpointing.warn_of_little_space(evaluated=self.heldout is not None)
            if self.heldout is not None:
                self.heldout.warn_of_others()
        # A run may have been killed between saving and evaluating; a model to finetune was never evaluated here.
        if (self.evaluation_due or self.is_last) and self.checkpointing.is_saved():
            self.evaluate(final=self.is_last)

    def stopping(self) -> bool:
        """Returns whether to stop before the next step."""
        self.checkpointing.poll()
        log_steps = self.state.trainer.config.log_steps
        if self.workers.any_every(log_steps, self.state.step, self.interrupt.requested):
            self.asked_to_stop = True
        return self.asked_to_stop or self._out_of_patience

    @property
    def _out_of_patience(self) -> bool:
        return self.heldout is not None and self.heldout.out_of_patience

    def save(self, needed: bool) -> None:
        """Saves a checkpoint, after checking that all losses so far are finite."""
        self.monitor.flush(sync=True)
        self.checkpointing.save(self.monitor.evaluations, needed)
        self.monitor.resume_clock()

    def _save_if_missing(self) -> None:
        if self.state.step > 0 and not self.checkpointing.is_saved():
            self.save(needed=True)

    def evaluate(self, final: bool) -> None:
        """Evaluates on the held-out text, if there is one; a run that was interrupted meanwhile will resume with it."""
        if self.heldout is not None and not self.heldout.evaluate(self.state.step, final):
            self.asked_to_stop = True

    def end(self) -> None:
        """Stops as requested, or logs the result."""
        workers, step = self.workers, self.state.step
        if self._out_of_patience and not self.asked_to_stop:
            waited = counted(self.state.trainer.config.patience, "evaluation")
            workers.info("train.patience: no better held-out perplexity in %s, training ends", waited)
            self._save_if_missing()
            self.evaluate(final=True)
        if workers.any(self.asked_to_stop or self.interrupt.requested):
            self._save_if_missing()
            workers.wait()
            done = f"at step {step:,}, checkpoint saved" if step else "before the first step"
            raise KeyboardInterrupt(f"stopped {done}; the same command resumes")
        if step > self.first_step:
            percent = (time.monotonic() - self.started_at) / 100
            evaluating = (self.heldout.seconds if self.heldout else 0.0) / percent
            saving = self.checkpointing.seconds / percent
            message = "evaluations took %.1f %% of the time, waiting for checkpoints %.1f %%"
            workers.info(message, evaluating, saving)
        found = comparable(self.heldout.earlier()) if self.heldout else []
        if len(found) > 1:
            shown = [f"{one.perplexity:.1f} at step {one.step:,}" for one in (found[0], found[-1], best(found))]
            workers.info("held-out perplexity: first %s, last %s; best %s, kept as the checkpoint `best`", *shown)
        workers.wait()


def _monitor(
    workdir: Workdir,
    state: TrainState,
    checkpointing: Checkpointing,
    last_step: int,
    profile: bool,
    on_record: Callable[[MetricsLine], None] | None,
    workers: OneWorker,
) -> Monitor:
    """Returns the monitor; the chief's writes `metrics.jsonl` and TensorBoard's files."""
    if not workers.is_chief:
        return Monitor(state, last_step)
    update_config(workdir)
    metrics = MetricsFile(workdir.metrics, checkpointing.saved_step, on_record)
    preparation.describe(workdir, state, checkpointing, last_step)
    board = Board(workdir.logs / workdir.path.resolve().name)
    board.configuration(workdir.config, state.step)
    diagnostics = Diagnostics(state.trainer, state.records.vocabulary.tokens)
    return Monitor(state, last_step, metrics, board, diagnostics, profile)
