"""The start of a training: opens the workdir, refuses what does not fit together, describes the run."""

import contextlib
import hashlib
import logging
import os
import pathlib
from collections.abc import Iterator

from elmo_tf.config import Config, check_same_model
from elmo_tf.errors import InputError
from elmo_tf.files import lock
from elmo_tf.files.progress import counted
from elmo_tf.records.record_folder import Records
from elmo_tf.training import devices, evaluation, precision
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.coordination import OneWorker
from elmo_tf.training.evaluation import text_id
from elmo_tf.training.state import TrainState
from elmo_tf.workdir import checkpoints, folder
from elmo_tf.workdir.folder import CONFIG_FILE, Workdir, is_workdir, new_workdir, open_workdir

_log = logging.getLogger("elmo_tf")


@contextlib.contextmanager
def opened_workdir(
    config: Config, workdir: str | os.PathLike, records: Records, heldout: Records | None, workers: OneWorker
) -> Iterator[Workdir]:
    """Yields the workdir, which is locked during the block; the chief makes it unless it exists.

    Raises:
        InputError: if it is in use, is another folder, or does not fit the configuration or the texts.
    """
    with contextlib.ExitStack() as stack:
        if workers.is_chief:
            _prepare(config, workdir, records, heldout)
            stack.enter_context(lock.locked(workdir))
        workers.wait()
        workers.wait_for_file(pathlib.Path(workdir, CONFIG_FILE))
        yield open_workdir(workdir)


def _prepare(config: Config, workdir: str | os.PathLike, records: Records, heldout: Records | None) -> None:
    """Makes the workdir, unless it exists; raises `InputError` if something does not fit."""
    if is_workdir(workdir):
        existing = open_workdir(workdir)
        check_same_model(existing.config, config)
        stored, wanted = existing.config.train.optimizer, config.train.optimizer
        if stored != wanted and checkpoints.latest(existing) is not None:
            raise InputError("train.optimizer", f"{stored}, as in the workdir's checkpoints", wanted)
        evaluation.check_records(existing, records, heldout)
        return
    if pathlib.Path(workdir).is_dir() and any(pathlib.Path(workdir).iterdir()):
        expected = "a workdir of elmo-tf train, or a folder that is empty or does not exist"
        raise InputError(str(workdir), expected, "a folder with other things in it")
    evaluation.check_records(Workdir(pathlib.Path(workdir), config, records.vocabulary), records, heldout)
    folder.check_memory(config, len(records.vocabulary))
    with new_workdir(workdir, precision.resolved(config), records.vocabulary, records.info.tokenizer):
        pass


def check_same(workers: OneWorker, **arguments: Records | Config | int | None) -> None:
    """Raises `InputError` on all workers if their arguments differ; otherwise they would wait for each other."""

    def checksum(value: Records | Config | int | None) -> float:
        text = text_id(value) if isinstance(value, Records) else repr(value)
        return float(int(hashlib.sha256(text.encode()).hexdigest()[:13], 16))  # a float64 has no more digits

    gathered = workers.gathered([checksum(value) for value in arguments.values()])
    for name, numbers in zip(arguments, gathered.T, strict=True):
        others = [str(index) for index, number in enumerate(numbers) if number != numbers[0]]
        if others:
            raise InputError(name, "the same for all workers", f"another one, or none, for worker {', '.join(others)}")


def describe(workdir: Workdir, state: TrainState, checkpointing: Checkpointing, last_step: int) -> None:
    """Logs what is trained, on what, and how far."""
    devices.warn_of_unused_gpus()
    trainer, info, epochs = state.trainer, state.records.info, state.epochs
    parameters = sum(variable.shape.num_elements() for variable in trainer.variables)
    words, sentences = info.tokens, info.sentences
    replicas = counted(trainer.strategy.num_replicas_in_sync, "replica")
    for line in (
        f"model: {parameters:,} parameters, softmax included",
        f"devices: {replicas}, here on {devices.names(trainer.strategy)}",
        f"corpus: {words + sentences:,} tokens ({words:,} words, {sentences:,} sentence boundaries)",
        f"training: step {state.step:,} to {last_step:,}, {epochs.steps_per_epoch:,.1f} steps per epoch, "
        f"{trainer.batch_size:,} x {trainer.config.unroll_steps} tokens per step",
        f"checkpoints: {checkpointing.num_bytes / 1e6:,.1f} MB each, and as much memory while one is written",
        f"TensorBoard: tensorboard --logdir {workdir.logs}",
    ):
        _log.info("%s", line)
