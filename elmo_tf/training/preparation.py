"""The start of a training: opens the workdir, rejects mismatched inputs, describes the run."""

import contextlib
import logging
import os
import pathlib
import shlex
from collections.abc import Iterator

from elmo_tf import precision
from elmo_tf.config import Config, TrainConfig, check_same_model
from elmo_tf.display import with_count
from elmo_tf.errors import InputError
from elmo_tf.files import lock
from elmo_tf.records.record_folder import Records
from elmo_tf.training import devices
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.state import TrainState
from elmo_tf.training.workers import Alone, Workers, check_same
from elmo_tf.workdir import checkpoints, folder
from elmo_tf.workdir.folder import Workdir, is_workdir, new_workdir, open_workdir

_log = logging.getLogger("elmo_tf")


@contextlib.contextmanager
def opened_workdir(
    config: Config, workdir: str | os.PathLike, records: Records, heldout: Records | None, workers: Alone | Workers
) -> Iterator[Workdir]:
    """Yields the workdir, which the chief makes, unless it exists, and locks during the block.

    Raises:
        InputError: if it is in use, is another folder, or does not fit the configuration or the texts; or if these
            are not the same for all workers.
    """
    with contextlib.ExitStack() as stack:
        if workers.is_chief:
            if is_workdir(workdir):
                _check(open_workdir(workdir), config, records, heldout)
            else:
                _make(workdir, config, records, heldout)
            stack.enter_context(lock.locked(workdir))
        workers.wait()
        workers.wait_for_file(pathlib.Path(workdir, folder.CONFIG_FILE))
        check_same(
            workers,
            data=records.text_id(),
            heldout=heldout and heldout.text_id(),
            steps=config.train.steps,
            config=config,
        )
        yield open_workdir(workdir)


def _check(existing: Workdir, config: Config, records: Records, heldout: Records | None) -> None:
    check_same_model(existing.config, config)
    stored, optimizer = existing.config.train.optimizer, config.train.optimizer
    if stored != optimizer and checkpoints.latest(existing) is not None:
        raise InputError("train.optimizer", f"{stored}, as in the workdir's checkpoints", optimizer)
    existing.check_records(records, heldout)


def _make(workdir: str | os.PathLike, config: Config, records: Records, heldout: Records | None) -> None:
    path = pathlib.Path(workdir)
    if path.is_dir() and any(path.iterdir()):
        raise InputError(str(workdir), "this folder contains other files; give a workdir, or a new or empty folder")
    Workdir(path, config, records.vocabulary).check_records(records, heldout)
    folder.check_memory(config, len(records.vocabulary))
    with new_workdir(workdir, precision.resolved(config), records.vocabulary, records.info.tokenizer):
        pass


def check_patience(config: Config, heldout: object | None) -> None:
    """Raises `InputError` if `train.patience` is set and there is no held-out text."""
    if config.train.patience and heldout is None:
        raise InputError("train.patience", "needs held-out text")


def warn_of_another_length(stored: TrainConfig, state: TrainState) -> None:
    """Warns if the training's length differs from the one stored in the workdir."""

    def length(config: TrainConfig) -> str:
        return with_count(config.epochs, "epoch") if config.epochs else with_count(config.steps or 0, "step")

    config = state.trainer.config
    if length(stored) != length(config):
        follows = "; the learning rate now decays to 0 by that step" * (config.decay in ("linear", "cosine"))
        message = "warning: this training's length changes from %s to %s: it ends at step %s%s"
        _log.warning(message, length(stored), length(config), f"{state.last_step:,}", follows)


def describe(workdir: Workdir, state: TrainState, checkpointing: Checkpointing) -> None:
    """Logs what is trained, on what, and how far."""
    devices.warn_of_unused_gpus()
    trainer, info = state.trainer, state.records.info
    parameters = sum(variable.shape.num_elements() for variable in trainer.variables)
    words, sentences = info.tokens, info.sentences
    replicas = with_count(trainer.strategy.num_replicas_in_sync, "replica")
    for line in (
        f"model: {parameters:,} parameters, softmax included",
        f"devices: {replicas}, here on {devices.names(trainer.strategy)}",
        f"corpus: {state.records.num_tokens:,} tokens ({words:,} words, {sentences:,} sentence boundaries)",
        f"training: step {state.step:,} to {state.last_step:,}, {state.steps_per_epoch:,.1f} steps per epoch, "
        f"{trainer.batch_size:,} x {trainer.config.unroll_steps} tokens per step",
        f"checkpoints: {checkpointing.num_bytes / 1e6:,.1f} MB each, and as much memory while one is written",
        f"TensorBoard: tensorboard --logdir {shlex.quote(str(workdir.logs))}",
    ):
        _log.info("%s", line)
