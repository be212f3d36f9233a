"""`train`, and the run that it makes: restore, step, log, evaluate, save."""

import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Callable

import keras
import tensorflow as tf

from elmo_tf.config import Config, with_length
from elmo_tf.errors import explain_out_of_memory
from elmo_tf.files.progress import with_count
from elmo_tf.records import record_folder
from elmo_tf.records.record_folder import Records
from elmo_tf.training import devices, preparation
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.heldout import HeldoutEvaluation
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.preparation import check_patience
from elmo_tf.training.signals import Interrupt, Stopped
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import Trainer, learning_rate
from elmo_tf.training.tensorboard import Board, Diagnostics
from elmo_tf.workdir.folder import Workdir, update_config
from elmo_tf.workdir.metrics_file import MetricsFile, MetricsLine, best, comparable

# Settings to change when memory runs out.
MEMORY_SETTINGS = ("train.batch_size, train.num_sampled, model.lstm.units", "set smaller values")

_log = logging.getLogger("elmo_tf")


def train(
    config: Config,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
    on_record: Callable[[MetricsLine], None] | None = None,
) -> Workdir:
    """Trains a BiLM on `data`, resuming from the newest intact checkpoint of `workdir`, if any.

    Checkpoints are made every `train.checkpoint_steps` steps or `train.checkpoint_minutes` minutes, and evaluations on
    the first `train.eval_tokens` tokens of `heldout` every `train.eval_steps` steps, with a checkpoint each. At the end
    there is a checkpoint, and an evaluation on all of `heldout`.

    Args:
        config: model and recipe; in an existing workdir, the model must be the same, and the recipe is replaced.
        data: a folder of records to train on.
        workdir: for everything that training writes; made if it does not exist.
        heldout: a folder of records to evaluate on.
        steps: total number of steps, those of earlier runs included, in place of the length in `config`.
        strategy: the devices; None: one replica on each visible GPU, or one on the CPU. All processes of a
            `MultiWorkerMirroredStrategy` call this with the same arguments; the first of them writes.
        on_record: called with each line of `metrics.jsonl`, a dictionary with the losses of a step or an evaluation;
            training waits for it. Steps that a resumed run repeats are passed again. An exception that it raises
            becomes a warning. Only the first of several workers calls it.

    Returns:
        the workdir, with a checkpoint of the last step.

    Raises:
        InputError: if the folders do not fit each other or the configuration, the workdir is in use, the memory is not
            sufficient, or a loss is not finite.
        OSError: if the last checkpoint cannot be written, or another worker has ended.
        KeyboardInterrupt: on Ctrl-C or SIGTERM, after the current step and a checkpoint.

    Examples:

    >>> config = elmo_tf.override(elmo_tf.preset("tiny"), ["train.learning_rate=0.01"])
    >>> workdir = elmo_tf.train(config, "data/train", "runs/mine", heldout="data/heldout", steps=2)
    >>> sorted(path.name for path in workdir.path.iterdir() if path.name[0] != ".")
    ['checkpoints', 'config.json', 'logs', 'metrics.jsonl', 'vocab.txt']
    """
    if steps is not None:
        config = with_length(config, steps=steps)
    strategy = strategy or devices.all_gpus()
    records = record_folder.open_folder(data)
    heldout_records = None if heldout is None else record_folder.open_folder(heldout)
    check_patience(config, heldout)
    run_class = Run
    if devices.num_workers(strategy) > 1:
        from elmo_tf.training.several import SharedRun as run_class  # noqa: PLC0415 - not read on one machine
    return run_class(config, records, workdir, heldout_records, strategy, on_record).train()


@dataclasses.dataclass
class Run:
    """A run in one process. `several.SharedRun` is one of several processes, with other hooks; see `train`."""

    config: Config
    records: Records
    path: str | os.PathLike  # of the workdir
    heldout_records: Records | None
    strategy: tf.distribute.Strategy
    on_record: Callable[[MetricsLine], None] | None

    def train(self) -> Workdir:
        """Trains; returns and raises as `train`."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(explain_out_of_memory(*MEMORY_SETTINGS))
            stored = stack.enter_context(self.opened_workdir())
            self.interrupt = stack.enter_context(Interrupt())
            config = devices.with_precision(self.config, stored.config)
            workdir = dataclasses.replace(stored, config=config, tokenizer=self.records.info.tokenizer)
            keras.utils.set_random_seed(config.train.seed)
            trainer = Trainer(self.strategy, config.train, lambda: workdir.new_bilm(config.train.precision))
            self.state = TrainState(trainer, self.records)
            self.checkpointing = stack.enter_context(contextlib.closing(self.new_checkpointing(workdir)))
            self.checkpointing.restore(stored.config.train)
            self.last_step = self.state.last_step
            self.stored_config = stored.config.train
            self.monitor = stack.enter_context(contextlib.closing(self.new_monitor(workdir)))
            self.heldout = self.new_evaluation()
            self.begin()
            windows = self.state.windows(self.last_step, self.stops_waiting)
            for window, position in stack.enter_context(contextlib.closing(windows)):
                if self.stopping():
                    break
                self.monitor.before_step(window)
                rate = learning_rate(config.train, self.state.step, self.last_step)
                self.monitor.record(trainer.step(window, self.state.step, rate), rate)
                self.state.advance(position)
                evaluating = self.is_last or self.heldout.due(self.state.step)
                if evaluating or self.checkpointing.due():
                    self.save(must_succeed=self.is_last)
                if evaluating:
                    self.evaluate(final=self.is_last)
            self.end()
        return workdir

    def opened_workdir(self) -> contextlib.AbstractContextManager[Workdir]:
        """Returns the context in which the workdir is open, and locked."""
        return preparation.opened_workdir(self.config, self.path, self.records, self.heldout_records)

    def new_checkpointing(self, workdir: Workdir) -> Checkpointing:
        """Returns what saves checkpoints."""
        return Checkpointing(workdir, self.state)

    def new_monitor(self, workdir: Workdir) -> Monitor:
        """Returns what writes `metrics.jsonl`, TensorBoard's files and the progress; describes the run first."""
        preparation.warn_of_another_length(self.stored_config, workdir.config.train, self.last_step)
        update_config(workdir)
        metrics = MetricsFile(workdir.metrics, self.checkpointing.saved_step, self.on_record)
        preparation.describe(workdir, self.state, self.checkpointing, self.last_step)
        board = Board(workdir.logs)
        board.configuration(workdir.config, self.state.step)
        diagnostics = Diagnostics(self.state.trainer, self.records.vocabulary.tokens)
        return Monitor(self.state, self.last_step, metrics, board, diagnostics)

    def new_evaluation(self) -> HeldoutEvaluation:
        """Returns what evaluates on the held-out text."""
        trainer = self.state.trainer
        evaluator = Evaluator(trainer.bilm, trainer.strategy, self.requested)
        return HeldoutEvaluation(self.heldout_records, trainer.config, self.monitor, evaluator)

    def requested(self) -> bool:
        """Whether this process was asked to stop."""
        return self.interrupt.requested

    def stops_waiting(self) -> bool:
        """Whether to stop waiting for data."""
        return self.requested()

    @property
    def is_last(self) -> bool:
        """Whether all steps are done."""
        return self.state.step == self.last_step

    def begin(self) -> None:
        """Catches up on this step's checkpoint and evaluation."""
        self.asked_to_stop = False
        self.first_step, self.started_at = self.state.step, time.monotonic()
        if self.last_step == 0 and not self.checkpointing.is_saved():
            self.save(must_succeed=True)
        elif self.state.step >= self.last_step:
            message = "nothing to do: step %s is done already, and training ends at step %s"
            self.info(message, f"{self.state.step:,}", f"{self.last_step:,}")
        else:
            self.warn()
        # A run may have been killed between saving and evaluating; a model to finetune was never evaluated here.
        if (self.is_last or self.heldout.due(self.state.step)) and self.checkpointing.is_saved():
            self.evaluate(final=self.is_last)

    def info(self, message: str, *arguments: object) -> None:
        """Logs a line."""
        _log.info(message, *arguments)

    def warn(self) -> None:
        """Warns of what may go wrong in the steps to come."""
        self.checkpointing.warn_of_little_space(evaluated=self.heldout_records is not None)
        self.heldout.warn_of_others()

    def stopping(self) -> bool:
        """Returns whether to stop before the next step."""
        self.checkpointing.poll()
        self.asked_to_stop = self.asked_to_stop or self.stop_requested()
        return self.asked_to_stop or self.heldout.out_of_patience

    def stop_requested(self, at_the_end: bool = False) -> bool:
        """Returns whether to stop, asked before a step or at the end."""
        return self.requested()

    def save(self, must_succeed: bool) -> None:
        """Saves a checkpoint, after checking that all losses so far are finite."""
        self.monitor.flush(sync=True)
        self.checkpointing.save(self.monitor.evaluations, must_succeed)
        self.monitor.resume_clock()

    def evaluate(self, final: bool) -> None:
        """Evaluates on the held-out text, if any; a run that was interrupted meanwhile will resume with it."""
        if not self.heldout.evaluate(self.state.step, final):
            self.asked_to_stop = True

    def end(self) -> None:
        """Stops as requested, or logs the result."""
        if self.heldout.out_of_patience and not self.asked_to_stop:
            waited = with_count(self.state.trainer.config.patience, "evaluation")
            self.info("train.patience: no better held-out perplexity in %s, training ends", waited)
            self._save_if_missing()
            self.evaluate(final=True)
        if self.stop_requested(at_the_end=True) or self.asked_to_stop:
            self._save_if_missing()
            step = self.state.step
            reached = f"at step {step:,}, checkpoint saved" if step else "before the first step"
            raise Stopped(f"stopped {reached}; the same command resumes")
        if self.state.step > self.first_step:
            percent = (time.monotonic() - self.started_at) / 100
            message = "evaluations took %.1f %% of the time, waiting for checkpoints %.1f %%"
            self.info(message, self.heldout.seconds / percent, self.checkpointing.seconds / percent)
        evaluations = comparable(self.heldout.evaluations())
        if len(evaluations) > 1:
            lines = evaluations[0], evaluations[-1], best(evaluations)
            perplexities = [f"{line.perplexity:.1f} at step {line.step:,}" for line in lines if line]
            message = "held-out perplexity: first %s, last %s; best %s, kept as the checkpoint `best`"
            self.info(message, *perplexities)

    def _save_if_missing(self) -> None:
        if self.state.step > 0 and not self.checkpointing.is_saved():
            self.save(must_succeed=True)
