"""The state of a training: what steps change and checkpoints store, and how it resumes."""

import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Callable, Generator

from msgspec.structs import replace

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.record_folder import Records
from elmo_tf.records.windows import Position, Window, Windows, prefetch
from elmo_tf.training.step import Trainer
from elmo_tf.workdir.checkpoint_files import Progress

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass
class TrainState:
    """A trainer, the text, and the progress so far."""

    trainer: Trainer
    records: Records
    # Without the LSTM states, which the trainer has.
    progress: Progress = dataclasses.field(default_factory=lambda: Progress(0))

    @property
    def step(self) -> int:
        """The number of steps made."""
        return self.progress.step

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a window of all streams."""
        return self.trainer.batch_size * self.trainer.config.unroll_steps

    @property
    def steps_per_epoch(self) -> float:
        """Steps per pass over the text."""
        return self.records.num_tokens / self.tokens_per_step

    @property
    def data_id(self) -> str:
        """Identifies the records and their order; a position in them is meaningless without it."""
        return self.records.text_id(self.trainer.config.seed)

    @property
    def last_step(self) -> int:
        """The number of steps of the whole training."""
        steps, epochs = self.trainer.config.steps, self.trainer.config.epochs
        return self.progress.step_after(epochs or 0, self.steps_per_epoch) if steps is None else steps

    @property
    def is_last(self) -> bool:
        """Whether the last step is made."""
        return self.step == self.last_step

    def epochs_at(self, step: int) -> float:
        """Returns the number of passes over the text after `step` steps."""
        return self.progress.epochs_at(step, self.steps_per_epoch)

    def advance(self, position: Position) -> None:
        """Counts a step; the next window is at `position`."""
        self.progress = replace(self.progress, step=self.step + 1, position=position)

    def saved(self) -> Progress:
        """Returns the progress as a checkpoint stores it, with the LSTM states; all workers must call this."""
        states, unroll_steps = self.trainer.gathered_states(), self.trainer.config.unroll_steps
        return replace(self.progress, states=states, data_id=self.data_id, unroll_steps=unroll_steps)

    def resume(self, progress: Progress) -> None:
        """Continues from a checkpoint, whose variables are restored already."""
        if progress.states is not None:
            self.trainer.set_states(progress.states)
        self.progress = replace(progress, states=None)

    def windows(self, interrupted: Callable[[], bool]) -> Generator[tuple[Window, Position], None, None]:
        """Yields each step's window up to the last, and the position after it.

        Ends early if `interrupted` returns True while the next window is not ready.
        """
        config = self.trainer.config
        windows = Windows(
            self.records,
            self.trainer.batch_size,
            config.unroll_steps,
            self.trainer.bilm.config.char_cnn.max_chars_per_token,
            config.seed,
            position=self.progress.position,
            rows=self.trainer.local_rows,
        )
        with contextlib.closing(prefetch(iter(windows), interrupted=interrupted)) as ready:
            yield from itertools.islice(ready, max(0, self.last_step - self.step))


def resumed(progress: Progress, stored_config: TrainConfig, state: TrainState) -> Progress:
    """Returns the progress of a checkpoint for the streams of this run.

    If the checkpoint has another number of streams, they start from zero states at the next sentence of the epoch; the
    unread rest of the sentences in progress is skipped. If a step now has another number of tokens, epochs before and
    after the checkpoint are counted separately. `stored_config` is the recipe of the run that wrote the checkpoint,
    `state` that of this run before its first step.
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
