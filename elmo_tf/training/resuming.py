"""What a checkpoint has to be for a run to go on from it, and what changes when the number of replicas does."""

import dataclasses
import logging

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.record_folder import Records
from elmo_tf.training.snapshots import Progress
from elmo_tf.training.step import Trainer

_log = logging.getLogger("elmo_tf")


def check(progress: Progress, data_id: str, records: Records, begun: TrainConfig, trainer: Trainer) -> None:
    """Raises `InputError` if a checkpoint belongs to another training.

    Args:
        progress: of the checkpoint.
        data_id: identifies the records and the seed of this training.
        records: the records, for the message.
        begun: the recipe of the run that wrote the checkpoint.
        trainer: with the recipe and the replicas of this one.
    """
    if progress.data_id not in (None, data_id):
        raise InputError(
            "data, train.seed",
            "the records and seed that the workdir was trained with so far",
            f"others: {records.path}; `elmo-tf finetune` trains on other text",
        )
    config, replicas = trainer.config, trainer.strategy.num_replicas_in_sync
    same_replicas = progress.num_streams == replicas * begun.batch_size * begun.accumulation_steps
    if same_replicas and progress.num_streams != trainer.batch_size:
        raise InputError(
            "train.batch_size, train.accumulation_steps, strategy",
            f"{progress.num_streams} streams in all, as in the checkpoint",
            f"{config.batch_size} x {config.accumulation_steps} x {replicas}",
        )


def with_streams(progress: Progress, trainer: Trainer, tokens_per_epoch: int, log: bool) -> Progress:
    """Returns the progress with as many streams as `trainer` has; if there were others, they begin afresh.

    The sentences that the streams were in the middle of are left there; the next ones of the epoch follow.

    Args:
        progress: of the checkpoint.
        trainer: of this run.
        tokens_per_epoch: that a pass over the corpus predicts in each direction.
        log: whether to say so.
    """
    streams, found, position = trainer.batch_size, progress.num_streams, progress.position
    if found in (None, streams):
        return progress
    if log:
        epoch, sentence = (position.epoch, position.sentence) if position else (0, 0)
        _log.warning(
            "warning: the checkpoint has %s streams, and there are %s now: they begin afresh, with zero states, after "
            "sentence %s of epoch %d",
            *(f"{found:,}", f"{streams:,}", f"{sentence:,}", epoch + 1),
        )
    if position is not None:
        position = dataclasses.replace(position, rows=(None,) * streams)
    steps = progress.step - progress.begun_step
    epochs = progress.begun_epochs + steps * found * trainer.config.unroll_steps / tokens_per_epoch
    return dataclasses.replace(progress, states=None, position=position, begun_step=progress.step, begun_epochs=epochs)
