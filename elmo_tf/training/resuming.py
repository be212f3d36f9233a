"""Checks that a run can resume from a checkpoint, and adapts it to another number of streams."""

import dataclasses
import logging

import msgspec

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.record_folder import Records
from elmo_tf.training.state import Epochs
from elmo_tf.training.step import Trainer
from elmo_tf.workdir.checkpoint_progress import Progress

_log = logging.getLogger("elmo_tf")


def check(progress: Progress, data_id: str, records: Records, stored_config: TrainConfig, trainer: Trainer) -> None:
    """Raises `InputError` if a checkpoint belongs to another training.

    Args:
        progress: of the checkpoint.
        data_id: identifies the records and the seed of this training.
        records: the records, for the message.
        stored_config: the recipe of the run that wrote the checkpoint.
        trainer: with the recipe and the replicas of this run.
    """
    if progress.data_id not in (None, data_id):
        raise InputError(
            "data, train.seed",
            "the records and seed that the workdir was trained with so far",
            f"others: {records.path}; elmo-tf finetune trains on other text",
        )
    replicas = trainer.strategy.num_replicas_in_sync
    same_replicas = progress.num_streams == replicas * stored_config.batch_size
    if same_replicas and progress.num_streams != trainer.batch_size:
        raise InputError(
            "train.batch_size, strategy",
            f"{progress.num_streams} streams in all, as in the checkpoint",
            f"{trainer.config.batch_size} x {replicas}",
        )


def continued(progress: Progress, stored_config: TrainConfig, trainer: Trainer, epochs: Epochs) -> Progress:
    """Returns the progress for the streams of `trainer`.

    If the checkpoint has another number of streams, they start from zero states at the next sentence of the epoch; the
    unread rest of the sentences in progress is skipped. If a step now has another number of tokens, epochs before and
    after the checkpoint are counted separately.
    """
    streams, found, position = trainer.batch_size, progress.num_streams, progress.position
    if found is None:
        return progress
    # Checkpoints of earlier versions lack unroll_steps; the stored recipe may have changed since the checkpoint.
    tokens_per_step = found * (progress.unroll_steps or stored_config.unroll_steps)
    if tokens_per_step != epochs.tokens_per_step:
        before = Epochs(epochs.tokens_per_epoch, tokens_per_step, progress.offset_step, progress.epoch_offset)
        progress = dataclasses.replace(progress, offset_step=progress.step, epoch_offset=before.at(progress.step))
    if found == streams:
        return progress
    epoch, sentence = (position.epoch, position.sentence) if position else (0, 0)
    _log.warning(
        "warning: the checkpoint has %s streams, and there are %s now: they start over, with zero states, after "
        "sentence %s of epoch %d",
        *(f"{found:,}", f"{streams:,}", f"{sentence:,}", epoch + 1),
    )
    if position is not None:
        position = msgspec.structs.replace(position, rows=(None,) * streams)
    return dataclasses.replace(progress, states=None, position=position)
