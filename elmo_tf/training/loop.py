"""`train`, and the run that it makes: restore, step, log, evaluate, save."""

import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Callable

import keras
import tensorflow as tf

from elmo_tf import precision
from elmo_tf.config import Config, with_length
from elmo_tf.display import with_count
from elmo_tf.errors import explain_out_of_memory
from elmo_tf.records import record_folder
from elmo_tf.records.record_folder import Records
from elmo_tf.training import devices, preparation
from elmo_tf.training import workers as workers_lib
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.heldout import HeldoutEvaluation
from elmo_tf.training.monitor import Monitor, Reports
from elmo_tf.training.signals import Interrupt, Stopped
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import Trainer, learning_rate
from elmo_tf.training.tensorboard import Board, Diagnostics
from elmo_tf.training.workers import Alone, Workers
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
        InputError: if the folders do not match each other or the configuration, the workdir is in use, memory runs out,
            or a loss is not finite.
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
    preparation.check_patience(config, heldout)
    workers = workers_lib.of(strategy)
    with workers.watched():
        with contextlib.ExitStack() as stack:
            stack.enter_context(explain_out_of_memory(*MEMORY_SETTINGS))
            opened = preparation.opened_workdir(config, workdir, records, heldout_records, workers)
            stored = stack.enter_context(opened)
            interrupt = stack.enter_context(Interrupt())
            run = Run(stored, config, records, heldout_records, strategy, workers, interrupt, on_record)
            stopped = stack.enter_context(contextlib.closing(run)).train()
        workers.wait()
    if stopped:
        raise Stopped(stopped)
    return run.workdir


class Run:
    """A training in progress, restored from the newest checkpoint of the workdir `stored`; arguments as for `train`."""

    def __init__(
        self,
        stored: Workdir,
        config: Config,
        records: Records,
        heldout_records: Records | None,
        strategy: tf.distribute.Strategy,
        workers: Alone | Workers,
        interrupt: Interrupt,
        on_record: Callable[[MetricsLine], None] | None,
    ):
        config = precision.resolved(config, stored.config)
        self.workdir = dataclasses.replace(stored, config=config, tokenizer=records.info.tokenizer)
        keras.utils.set_random_seed(config.train.seed)
        self.trainer = Trainer(strategy, config.train, lambda: self.workdir.new_bilm(config.train.precision))
        self.state = TrainState(self.trainer, records)
        self.checkpointing = Checkpointing(self.workdir, self.state, workers)
        self.checkpointing.restore(stored.config.train)
        self.monitor = Monitor(self.state, self._reports(stored, on_record) if workers.is_chief else None)
        evaluator = Evaluator(self.trainer.bilm, strategy, lambda: interrupt.requested, workers)
        self.heldout = HeldoutEvaluation(heldout_records, config.train, self.monitor, evaluator, workers)
        self._workers = workers
        self._interrupt = interrupt
        self._asked_to_stop = False  # by a signal to any worker

    def train(self) -> str:
        """Trains to the last step; returns "", or what to tell the user if a signal stopped it before."""
        state, started_at, first_step = self.state, time.monotonic(), self.state.step
        self._catch_up()
        with contextlib.closing(state.windows(self._stops_waiting)) as windows:
            for window, position in windows:
                if self._stops():
                    break
                self.monitor.before_step(window)
                rate = learning_rate(self.trainer.config, state.step, state.last_step)
                self.monitor.record(self.trainer.step(window, state.step, rate), rate)
                state.advance(position)
                evaluating = state.is_last or self.heldout.due(state.step)
                if evaluating or self.checkpointing.due():
                    self._save(must_succeed=state.is_last)
                if evaluating:
                    self._evaluate(final=state.is_last)
        if self.heldout.out_of_patience and not self._asked_to_stop:
            waited = with_count(self.trainer.config.patience, "evaluation")
            self._info("train.patience: no better held-out perplexity in %s, training ends", waited)
            self._save_if_missing()
            self._evaluate(final=True)
        if self._workers.any(self._asked_to_stop or self._interrupt.requested):
            self._save_if_missing()
            reached = f"at step {state.step:,}, checkpoint saved" if state.step else "before the first step"
            return f"stopped {reached}; the same command resumes"
        self._log_results(state.step - first_step, time.monotonic() - started_at)
        return ""

    def close(self) -> None:
        """Waits for the checkpoint that is being written, and closes the files."""
        self.monitor.close()
        self.checkpointing.close()

    def _reports(self, stored: Workdir, on_record: Callable[[MetricsLine], None] | None) -> Reports:
        """Stores the configuration, describes the run, and returns where it reports."""
        preparation.warn_of_another_length(stored.config.train, self.state)
        update_config(self.workdir)
        metrics = MetricsFile(self.workdir.metrics, self.checkpointing.saved_step, on_record)
        preparation.describe(self.workdir, self.state, self.checkpointing)
        board = Board(self.workdir.logs)
        board.configuration(self.workdir.config, self.state.step)
        if 0 == self.state.step < self.state.last_step and self.trainer.config.look_steps > 0:
            board.network(self.trainer.bilm)
        return Reports(metrics, board, Diagnostics(self.trainer, self.state.records.vocabulary.tokens))

    def _catch_up(self) -> None:
        """Makes this step's checkpoint and evaluation, if an earlier run left them out."""
        state = self.state
        if state.last_step == 0 and not self.checkpointing.is_saved():
            self._save(must_succeed=True)
        elif state.step >= state.last_step:
            message = "nothing to do: step %s is done already, and training ends at step %s"
            self._info(message, f"{state.step:,}", f"{state.last_step:,}")
        elif self._workers.is_chief:
            self.checkpointing.warn_of_little_space(self.heldout.has_text)
            self.heldout.warn_of_others()
        # A run may have been killed between saving and evaluating; a model to fine-tune was never evaluated here.
        if (state.is_last or self.heldout.due(state.step)) and self.checkpointing.is_saved():
            self._evaluate(final=state.is_last)

    def _stops_waiting(self) -> bool:
        """Returns whether to stop waiting for data; several workers all stop at the same step."""
        return self._workers.count == 1 and self._interrupt.requested

    def _stops(self) -> bool:
        """Returns whether to stop before the next step."""
        self.checkpointing.poll()
        period = self.trainer.config.log_steps
        if self._workers.any_every(period, self.state.step, self._interrupt.requested):
            self._asked_to_stop = True
        return self._asked_to_stop or self.heldout.out_of_patience

    def _save(self, must_succeed: bool) -> None:
        """Saves a checkpoint, after checking that all losses so far are finite."""
        self.monitor.flush(sync=True)
        self.checkpointing.save(self.monitor.evaluations, must_succeed)
        self.monitor.resume_clock()

    def _save_if_missing(self) -> None:
        if self.state.step > 0 and not self.checkpointing.is_saved():
            self._save(must_succeed=True)

    def _evaluate(self, final: bool) -> None:
        """Evaluates on the held-out text, if any; a run that was interrupted meanwhile will resume with it."""
        if not self.heldout.evaluate(self.state.step, final):
            self._asked_to_stop = True

    def _info(self, message: str, *arguments: object) -> None:
        """Logs a line, once for all workers."""
        if self._workers.is_chief:
            _log.info(message, *arguments)

    def _log_results(self, num_steps: int, seconds: float) -> None:
        if num_steps > 0:
            message = "evaluations took %.1f %% of the time, waiting for checkpoints %.1f %%"
            self._info(message, 100 * self.heldout.seconds / seconds, 100 * self.checkpointing.seconds / seconds)
        evaluations = comparable(self.heldout.evaluations())
        if len(evaluations) > 1:
            lines = evaluations[0], evaluations[-1], best(evaluations)
            perplexities = [f"{line.rank:.1f} at step {line.step:,}" for line in lines if line]
            message = "held-out perplexity: first %s, last %s; best %s, kept as the checkpoint `best`"
            self._info(message, *perplexities)
