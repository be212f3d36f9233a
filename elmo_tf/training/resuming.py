"""Checks that a run can resume from a checkpoint, and adapts it to another number of streams."""

import logging

from msgspec.structs import replace

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.training.state import TrainState
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
            f"this workdir was trained on other records than {state.records.path}, or with another seed; "
            "elmo-tf finetune trains on other text",
        )
    trainer, position = state.trainer, progress.position
    streams, stored_streams = trainer.batch_size, progress.num_streams
    num_replicas = trainer.strategy.num_replicas_in_sync
    if stored_streams is None:
        return progress
    if stored_streams != streams and stored_streams == num_replicas * stored_config.batch_size:
        raise InputError(
            "train.batch_size, strategy",
            f"{stored_streams} streams in all, as in the checkpoint",
            f"{trainer.config.batch_size} x {num_replicas}",
        )
    # The stored recipe may have changed since the checkpoint.
    tokens_per_step = stored_streams * (progress.unroll_steps or stored_config.unroll_steps)
    if tokens_per_step != state.tokens_per_step:
        epochs = progress.epochs_at(progress.step, state.records.num_tokens / tokens_per_step)
        progress = replace(progress, offset_step=progress.step, epoch_offset=epochs)
    if stored_streams == streams:
        return progress
    epoch, sentence = (position.epoch, position.sentence) if position else (0, 0)
    _log.warning(
        "warning: the checkpoint has %s streams, and there are %s now: they start over, with zero states, after "
        "sentence %s of epoch %d",
        f"{stored_streams:,}",
        f"{streams:,}",
        f"{sentence:,}",
        epoch + 1,
    )
    if position is not None:
        position = replace(position, rows=(None,) * streams)
    return replace(progress, states=None, position=position)
