"""The training loop: restore, step, log, evaluate, save."""

import contextlib
import dataclasses
import hashlib
import logging
import os
import pathlib
from collections.abc import Callable

import keras
import tensorflow as tf

from elmo_tf.config import Config, check_same_model
from elmo_tf.errors import InputError, memory_explained, renamed
from elmo_tf.files import lock
from elmo_tf.files.progress import counted
from elmo_tf.records import record_folder
from elmo_tf.training import devices, evaluation, precision, processes
from elmo_tf.training import heldout as heldout_lib
from elmo_tf.training.board import Board
from elmo_tf.training.diagnostics import Diagnostics
from elmo_tf.training.metrics_hook import MetricsLine, guarded
from elmo_tf.training.monitor import Monitor, Plan
from elmo_tf.training.processes import OneProcess
from elmo_tf.training.schedule import learning_rate
from elmo_tf.training.signals import Interrupt
from elmo_tf.training.step import Trainer
from elmo_tf.training.training_run import TrainingRun
from elmo_tf.workdir import checkpoints, space
from elmo_tf.workdir.folder import CONFIG_FILE, Workdir, is_workdir, new_workdir, open_workdir
from elmo_tf.workdir.metrics_file import MetricsFile, best, comparable

# What to change when the memory is not sufficient.
MEMORY_SETTINGS = (
    "train.batch_size, train.num_sampled, model.lstm.units",
    "smaller values (`train.accumulation_steps` keeps the update of a smaller batch the same)",
)

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
    strategy = strategy or devices.all_gpus()
    workers = processes.of(strategy)
    records, heldout_records = evaluation.open_records(data, heldout)
    heldout_lib.check_patience(config, heldout)
    with contextlib.ExitStack() as stack:
        stack.enter_context(workers.watched())
        stack.enter_context(memory_explained(*MEMORY_SETTINGS))
        if workers.is_chief:
            _prepare(config, workdir, records, heldout_records)
            with renamed(folder="workdir"):
                stack.enter_context(lock.locked(workdir))
        workers.wait()
        interrupt = stack.enter_context(Interrupt())
        if not workers.is_chief:
            workers.see(pathlib.Path(workdir) / CONFIG_FILE)
        opened = open_workdir(workdir)
        stored_config = opened.config.train
        config = precision.settled(config, opened.config)
        _check_same(workers, data=records, heldout=heldout_records, config=config, steps=steps)
        opened = dataclasses.replace(opened, config=config)
        keras.utils.set_random_seed(config.train.seed)
        trainer = Trainer(strategy, config.train, lambda: opened.new_bilm(config.train.precision))
        run = stack.enter_context(
            contextlib.closing(
                TrainingRun(opened, trainer, records, heldout_records, workers, interrupt, stored_config)
            )
        )
        run.restore()
        last_step = run.epochs.step_after(config.train.epochs) if steps is None else steps
        _train(run, last_step, profile, on_record)
    return run.workdir


def _prepare(
    config: Config,
    workdir: str | os.PathLike,
    records: record_folder.Records,
    heldout: record_folder.Records | None,
) -> None:
    """Makes the workdir, unless it exists; raises `InputError` if something does not fit."""
    existing = open_workdir(workdir) if is_workdir(workdir) else None
    if existing is not None:
        check_same_model(existing.config, config)
        optimizer, found = existing.config.train.optimizer, config.train.optimizer
        if optimizer != found and checkpoints.latest(existing) is not None:
            raise InputError("train.optimizer", f"{optimizer}, as in the workdir's checkpoints", found)
    elif pathlib.Path(workdir).is_dir() and any(pathlib.Path(workdir).iterdir()):
        expected = "a workdir of `elmo-tf train`, or a folder that is empty or does not exist"
        raise InputError("workdir", expected, f"one with other things in it: {workdir}")
    vocabulary = records.vocabulary if existing is None else existing.vocabulary
    evaluation.check_training_records(config.model, vocabulary, records, heldout)
    if existing is None:
        space.check_memory(config, len(vocabulary))
        with new_workdir(workdir, precision.settled(config), vocabulary):
            pass


def _check_same(workers: OneProcess, **arguments: record_folder.Records | Config | int | None) -> None:
    """Raises `InputError`, in all processes, if they have different arguments: they would wait for each other."""

    def identity(value: record_folder.Records | Config | int | None) -> float:
        text = heldout_lib.text_id(value) if isinstance(value, record_folder.Records) else repr(value)
        # As many digits of the checksum as a float64 has.
        return float(int(hashlib.sha256(text.encode()).hexdigest()[:13], 16))

    gathered = workers.gathered([identity(value) for value in arguments.values()])
    for name, numbers in zip(arguments, gathered.T, strict=True):
        others = [str(index) for index, number in enumerate(numbers) if number != numbers[0]]
        if others:
            raise InputError(name, "the same for all workers", f"another one, or none, for worker {', '.join(others)}")


def _train(run: TrainingRun, last_step: int, profile: bool, on_record: Callable[[MetricsLine], None] | None) -> None:
    """Trains up to `last_step`; evaluates and saves on the way and at the end."""
    trainer, config = run.trainer, run.trainer.config
    if run.workers.is_chief:
        on_line = None if on_record is None else guarded(on_record)
        run.metrics = MetricsFile(run.workdir.metrics, run.writer.saved_step, on_line)
        _describe(run, last_step)
    with contextlib.closing(_monitor(run, last_step, profile)) as monitor:
        _begin(run, last_step, monitor)
        with contextlib.closing(run.windows(last_step)) as windows:
            for window in windows:
                monitor.before_step(window)
                trainer.learning_rate = learning_rate(config, run.step, last_step)
                monitor.record(trainer.step(window, run.step), trainer.learning_rate)
                run.step += 1
                if run.at_checkpoint() or run.step == last_step:
                    run.save(monitor, needed=run.step == last_step)
                if run.at_evaluation or run.step == last_step:
                    run.evaluate(monitor, final=run.step == last_step)
        _end(run, monitor)


def _monitor(run: TrainingRun, last_step: int, profile: bool) -> Monitor:
    plan = Plan(run.step, last_step, run.epochs)
    if not run.workers.is_chief:
        return Monitor(plan, run.trainer.config)
    board = Board(run.workdir.logs / run.workdir.path.resolve().name)
    board.configuration(run.workdir.config, run.step)
    diagnostics = Diagnostics(run.trainer, run.records.vocabulary.tokens)
    return Monitor(plan, run.trainer.config, run.metrics, board, diagnostics, profile)


def _begin(run: TrainingRun, last_step: int, monitor: Monitor) -> None:
    """Makes the checkpoint and the evaluation of this step that an earlier run did not get to."""
    if last_step == 0 and not run.is_saved():
        run.save(monitor, needed=True)
    elif run.workers.is_chief and run.step >= last_step:
        _log.info(
            "nothing to do: step %s is done already, and training ends at step %s", *_grouped(run.step, last_step)
        )
    elif run.workers.is_chief:
        run.warn_of_little_space(last_step)
        run.warn_of_other_evaluations()
    # A run may have been killed between saving and evaluating; a model to be finetuned was never evaluated here.
    if (run.at_evaluation or run.step == last_step) and run.is_saved():
        run.evaluate(monitor, final=run.step == last_step)


def _end(run: TrainingRun, monitor: Monitor) -> None:
    """Stops as requested, or logs the result."""
    workers = run.workers
    if run.out_of_patience and not run.asked_to_stop:
        if workers.is_chief:
            patience = run.trainer.config.patience
            waited = counted(patience, "evaluation")
            _log.info("train.patience: no better held-out perplexity in %s, training ends", waited)
        if run.step > 0 and not run.is_saved():
            run.save(monitor, needed=True)
        run.evaluate(monitor, final=True)
        run.asked_to_stop = workers.any(run.interrupt.requested)
    if run.asked_to_stop:
        if run.step > 0 and not run.is_saved():
            run.save(monitor, needed=True)
        workers.wait()
        done = f"at step {run.step:,}, checkpoint saved" if run.step else "before the first step"
        raise KeyboardInterrupt(f"stopped {done}; the same command resumes")
    if workers.is_chief and run.step > monitor.first_step:
        _log.info("%s", run.shares())
    found = comparable(run.evaluations())
    if workers.is_chief and len(found) > 1:
        shown = [f"{one['perplexity']:.1f} at step {one['step']:,}" for one in (found[0], found[-1], best(found))]
        _log.info("held-out perplexity: first %s, last %s; best %s, kept as the checkpoint `best`", *shown)
    workers.wait()


def _describe(run: TrainingRun, last_step: int) -> None:
    """Logs what is trained, on what, and how far."""
    devices.warn_of_unused_gpus()
    strategy, config, info = run.trainer.strategy, run.trainer.config, run.records.info
    parameters = sum(variable.shape.num_elements() for variable in run.trainer.variables)
    words, sentences = info["tokens"], info["sentences"]
    size = space.megabytes(run.checkpoint_bytes)
    for line in (
        f"model: {parameters:,} parameters, softmax included",
        f"devices: {counted(strategy.num_replicas_in_sync, 'replica')}, here on {devices.names(strategy)}",
        f"corpus: {words + sentences:,} tokens ({words:,} words, {sentences:,} sentence boundaries)",
        f"training: step {run.step:,} to {last_step:,}, {run.epochs.steps_per_epoch:,.1f} steps per epoch, "
        f"{run.trainer.batch_size:,} x {config.unroll_steps} tokens per step",
        f"checkpoints: {size} MB each, and as much memory while one is written",
        f"TensorBoard: tensorboard --logdir {run.workdir.logs}",
    ):
        _log.info("%s", line)


def _grouped(*numbers: int) -> list[str]:
    return [f"{number:,}" for number in numbers]
