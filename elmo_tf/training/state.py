"""The state of a training: what steps change and checkpoints store."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Generator

from msgspec.structs import replace

from elmo_tf.records.record_folder import Records
from elmo_tf.records.windows import Position, Window, Windows, prefetch
from elmo_tf.training.step import Trainer
from elmo_tf.workdir.checkpoint_progress import Progress


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
        """Identifies the records and their order, which a position in them needs."""
        return self.records.text_id(self.trainer.config.seed)

    def epochs_at(self, step: int) -> float:
        """Returns the number of passes over the text after `step` steps."""
        return self.progress.epochs_at(step, self.steps_per_epoch)

    def step_after(self, epochs: float) -> int:
        """Returns the step at which `epochs` passes are complete."""
        return self.progress.step_after(epochs, self.steps_per_epoch)

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
            position=self.progress.position,
            rows=self.trainer.local_rows,
        )
        with contextlib.closing(prefetch(iter(windows), interrupted=interrupted)) as ready:
            yield from itertools.islice(ready, max(0, last_step - self.step))
