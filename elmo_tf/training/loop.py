"""The training loop: restore, step, log, evaluate, save."""

import contextlib
import dataclasses
import logging
import math
import os
import pathlib

import keras
import tensorflow as tf

from elmo_tf.config import Config, check_same_model
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.training import checkpoints, lock
from elmo_tf.training.board import Board
from elmo_tf.training.evaluation import check_records
from elmo_tf.training.look import CloserLook
from elmo_tf.training.metrics_file import MetricsFile, best
from elmo_tf.training.monitor import Monitor, Plan
from elmo_tf.training.schedule import learning_rate
from elmo_tf.training.session import Session
from elmo_tf.training.signals import Interrupt
from elmo_tf.training.step import Trainer
from elmo_tf.training.workers import Workers

_log = logging.getLogger("elmo_tf")


def train(
    config: Config,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
    profile: bool = False,
) -> checkpoints.Workdir:
    """Trains a BiLM on `data`, going on from the newest intact checkpoint of `workdir` if there is one.

    Checkpoints, and with `heldout` evaluations, come every `train.checkpoint_steps` and at the end.

    Args:
        config: model and recipe; an existing workdir takes over the recipe, its model has to be the same.
        data: a folder of records to train on.
        workdir: where everything is kept; made if it is not there.
        heldout: a folder of records to evaluate on.
        steps: steps in all, those made before included; None: `train.epochs` passes over `data`.
        strategy: where to run; None: one replica on each visible GPU, or one on the CPU. All processes of a
            `MultiWorkerMirroredStrategy` call this with the same arguments; the first of them writes.
        profile: whether to trace some steps for TensorBoard.

    Returns:
        the workdir, with a checkpoint of the last step.

    Raises:
        InputError: if the folders do not fit each other or the configuration, the workdir is in use, or a loss is not
            finite.
        OSError: if the last checkpoint cannot be written, or another worker is gone.
        KeyboardInterrupt: on SIGINT or SIGTERM, once the step is finished and a checkpoint saved.
    """
    strategy = strategy or _all_gpus()
    workers = Workers(strategy)
    records = record_folder.open_folder(data)
    heldout_records = None if heldout is None else record_folder.open_folder(heldout, "--heldout")
    if config.train.patience and heldout is None:
        raise InputError("--patience: expected --heldout with it, found none")
    with contextlib.ExitStack() as stack:
        stack.enter_context(workers.watched())
        if workers.is_chief:
            _prepare(config, workdir, records, heldout_records)
            stack.enter_context(lock.locked(workdir))
        workers.wait()
        interrupt = stack.enter_context(Interrupt())
        opened = dataclasses.replace(checkpoints.open_workdir(workdir), config=config)
        keras.utils.set_random_seed(config.train.seed)
        trainer = Trainer(strategy, config.train, lambda: opened.new_bilm(config.train.precision))
        session = Session(opened, trainer, records, heldout_records, workers, interrupt)
        session.restore()
        _run(session, math.ceil(config.train.epochs * session.steps_per_epoch) if steps is None else steps, profile)
    return opened


def _prepare(
    config: Config,
    workdir: str | os.PathLike,
    records: record_folder.Records,
    heldout: record_folder.Records | None,
) -> None:
    """Makes the workdir, unless it is there already; raises `InputError` if something does not fit."""
    existing = checkpoints.open_workdir(workdir) if checkpoints.exists(workdir) else None
    if existing is not None:
        check_same_model(existing.config, config, "--preset, --set")
        expected, found = existing.config.train.optimizer, config.train.optimizer
        if expected != found:
            raise InputError(f"train.optimizer: expected {expected}, as in the workdir's checkpoints, found {found}")
    elif pathlib.Path(workdir).is_dir() and any(pathlib.Path(workdir).iterdir()):
        raise InputError(
            "--workdir: expected a workdir of `elmo-tf train`, or a folder that is empty or not there, found one with "
            f"other things in it: {workdir}"
        )
    vocabulary = records.vocabulary if existing is None else existing.vocabulary
    check_records(config.model, vocabulary, records, "--data")
    if heldout is not None:
        check_records(config.model, vocabulary, heldout, "--heldout")
    if existing is None:
        with checkpoints.new_workdir(workdir, config, vocabulary):
            pass


def _run(session: Session, last_step: int, profile: bool) -> None:
    """Trains up to `last_step`, evaluating and saving on the way and at the end."""
    trainer, config = session.trainer, session.trainer.config
    with contextlib.closing(_monitor(session, last_step, profile)) as monitor:
        _begin(session, last_step, monitor)
        with contextlib.closing(session.windows()) as windows:
            while not session.stopping() and session.step < last_step:
                window, session.position = next(windows)
                monitor.look_ahead(window)
                trainer.learning_rate = learning_rate(config, session.step, last_step)
                monitor.record(trainer.step(window, session.step), trainer.learning_rate)
                session.step += 1
                if session.at_checkpoint or session.step == last_step:
                    session.save(monitor, needed=session.step == last_step)
                    session.evaluate(monitor)
        _end(session, monitor)


def _monitor(session: Session, last_step: int, profile: bool) -> Monitor:
    plan = Plan(session.step, last_step, session.steps_per_epoch, session.tokens_per_step)
    if not session.workers.is_chief:
        return Monitor(plan, session.trainer.config)
    board = Board(session.workdir.logs)
    board.configuration(session.workdir.config, session.step)
    lines = MetricsFile(session.workdir.metrics, session.saved_step)
    look = CloserLook(session.trainer, session.records.vocabulary.tokens)
    return Monitor(plan, session.trainer.config, lines, board, look, profile)


def _begin(session: Session, last_step: int, monitor: Monitor) -> None:
    """Says what is going to happen, and does what a run that ended here has left to be done."""
    if session.workers.is_chief:
        _describe(session, last_step)
    if session.saved_step is None and last_step == 0:
        session.save(monitor, needed=True)
    elif session.step >= last_step and session.workers.is_chief:
        _log.info("nothing to do: %s steps are made already; --steps sets another end", f"{session.step:,}")
    # A run may have been killed between saving and evaluating; a model to be finetuned was never evaluated here.
    if session.saved_step is not None and (session.at_checkpoint or session.step == last_step):
        session.evaluate(monitor)


def _end(session: Session, monitor: Monitor) -> None:
    """Leaves as asked, or tells the result."""
    workers, found = session.workers, session.evaluations()
    if session.asked_to_stop:
        if session.step > 0 and session.saved_step != session.step:
            session.save(monitor, needed=True)
        workers.wait()
        done = f"at step {session.step:,}, checkpoint saved" if session.step else "before the first step"
        raise KeyboardInterrupt(f"stopped {done}; the same command goes on from there")
    if workers.is_chief and session.out_of_patience:
        patience = session.trainer.config.patience
        _log.info("train.patience: no better held-out perplexity in %d evaluations, training ends", patience)
    if workers.is_chief and len(found) > 1:
        told = [f"{one['perplexity']:.1f} at step {one['step']:,}" for one in (found[0], found[-1], best(found))]
        _log.info("held-out perplexity: first %s, last %s; best %s, kept as --checkpoint best", *told)
    workers.wait()


def _describe(session: Session, last_step: int) -> None:
    parameters = sum(variable.shape.num_elements() for variable in session.trainer.variables)
    _log.info(
        "%s parameters (softmax included) on %d replica(s), %d x %d tokens a step; %s tokens in the corpus, "
        "%.1f steps an epoch; from step %s to %s; TensorBoard: tensorboard --logdir %s",
        f"{parameters:,}",
        session.trainer.strategy.num_replicas_in_sync,
        session.trainer.batch_size,
        session.trainer.config.unroll_steps,
        f"{session.records.info['tokens']:,}",
        session.steps_per_epoch,
        f"{session.step:,}",
        f"{last_step:,}",
        session.workdir.logs,
    )


def _all_gpus() -> tf.distribute.Strategy:
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    return tf.distribute.MirroredStrategy(gpus or ["CPU:0"])
