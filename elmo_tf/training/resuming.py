"""Checks that a run can resume from a checkpoint, and adapts it to another number of streams."""

import dataclasses
import logging

import msgspec

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.training.state import Epochs, TrainState
from elmo_tf.workdir.checkpoint_progress import Progress

_log = logging.getLogger("elmo_tf")


def resumed(progress: Progress, stored_config: TrainConfig, state: TrainState) -> Progress:
    """Returns the progress of a checkpoint for the streams of this run.

    If the checkpoint has another number of streams, they start from zero states at the next sentence of the epoch; the
    unread rest of the sentences in progress is skipped. If a step now has another number of tokens, epochs before and
    after the checkpoint are counted separately.

    Args:
        progress: of the checkpoint.
        stored_config: the recipe of the run that wrote the checkpoint.
        state: of this run, before its first step.

    Raises:
        InputError: if the checkpoint belongs to another training.
    """
    if progress.data_id not in (None, state.data_id):
        raise InputError(
            "data, train.seed",
            "the records and seed that the workdir was trained with so far",
            f"others: {state.records.path}; elmo-tf finetune trains on other text",
        )
    trainer, epochs, position = state.trainer, state.epochs, progress.position
    streams, found, replicas = trainer.batch_size, progress.num_streams, trainer.strategy.num_replicas_in_sync
    if found is None:
        return progress
    if found != streams and found == replicas * stored_config.batch_size:
        raise InputError(
            "train.batch_size, strategy",
            f"{found} streams in all, as in the checkpoint",
            f"{trainer.config.batch_size} x {replicas}",
        )
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
