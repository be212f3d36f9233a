"""The state of a training: what steps change and checkpoints store."""

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Generator

from elmo_tf.records.record_folder import Records
from elmo_tf.records.windows import Position, Window, Windows, prefetch
from elmo_tf.training.evaluation import num_tokens, text_id
from elmo_tf.training.step import Trainer
from elmo_tf.workdir.checkpoint_progress import Progress


@dataclasses.dataclass(frozen=True)
class Epochs:
    """Converts between steps and passes over the text, even if the size of a step changed during training."""

    tokens_per_epoch: int  # as `num_tokens`
    tokens_per_step: int
    offset_step: int = 0  # as in `Progress`
    epoch_offset: float = 0.0

    @property
    def steps_per_epoch(self) -> float:
        """Steps per pass over the text."""
        return self.tokens_per_epoch / self.tokens_per_step

    def at(self, step: int) -> float:
        """Returns the number of epochs after `step` steps."""
        return self.epoch_offset + (step - self.offset_step) / self.steps_per_epoch

    def step_after(self, epochs: float) -> int:
        """Returns the step at which `epochs` epochs are complete."""
        return self.offset_step + math.ceil((epochs - self.epoch_offset) * self.steps_per_epoch)


@dataclasses.dataclass
class TrainState:
    """A trainer, its place in the text, and the number of steps done."""

    trainer: Trainer
    records: Records
    step: int = 0
    position: Position | None = None  # of the next window; None: the start of the text
    offset_step: int = 0  # as in `Progress`
    epoch_offset: float = 0.0

    @property
    def epochs(self) -> Epochs:
        """The passes over the text, by this run's recipe."""
        tokens_per_step = self.trainer.batch_size * self.trainer.config.unroll_steps
        return Epochs(num_tokens(self.records), tokens_per_step, self.offset_step, self.epoch_offset)

    @property
    def data_id(self) -> str:
        """Identifies the records and their order, in which `position` is a place."""
        return text_id(self.records, self.trainer.config.seed)

    def progress(self) -> Progress:
        """Returns the state as a checkpoint stores it; all workers must call this."""
        states, offsets = self.trainer.gathered_states(), (self.offset_step, self.epoch_offset)
        return Progress(self.step, self.position, self.data_id, states, self.trainer.config.unroll_steps, *offsets)

    def set_progress(self, progress: Progress) -> None:
        """Continues from a checkpoint, whose variables are restored already."""
        if progress.states is not None:
            self.trainer.set_states(progress.states)
        self.step, self.position = progress.step, progress.position
        self.offset_step, self.epoch_offset = progress.offset_step, progress.epoch_offset

    def windows(
        self, last_step: int, interrupted: Callable[[], bool]
    ) -> Generator[tuple[Window, Position], None, None]:
        """Yields each step's window up to `last_step`, and the position after it.

        Ends early if `interrupted` returns True while the next window is not ready.
        """
        config = self.trainer.config
        windows = Windows(
            self.records,
            self.trainer.batch_size,
            config.unroll_steps,
            self.trainer.bilm.config.char_cnn.max_chars_per_token,
            config.seed,
            position=self.position,
            rows=self.trainer.local_rows,
        )
        with contextlib.closing(prefetch(iter(windows), interrupted=interrupted)) as ready:
            yield from itertools.islice(ready, max(0, last_step - self.step))
