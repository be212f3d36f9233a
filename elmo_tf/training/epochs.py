"""Converts between steps and passes over the text."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Epochs:
    """Converts between steps and epochs, even if the size of a step changed during training."""

    tokens_per_epoch: int  # predicted in each direction by a pass over the text: every word, a boundary per sentence
    tokens_per_step: int  # boundaries included, each counted once for both directions
    # The step at which the number of tokens per step last changed, and the epochs until then.
    offset_step: int = 0
    epoch_offset: float = 0.0

    @property
    def steps_per_epoch(self) -> float:
        """Steps per pass over the text."""
        return self.tokens_per_epoch / self.tokens_per_step

    def at(self, step: int) -> float:
        """Returns the number of epochs after `step` steps."""
        return self.epoch_offset + (step - self.offset_step) / self.steps_per_epoch

    def step_after(self, epochs: float) -> int:
        """Returns the total number of steps after which so many epochs are done."""
        return self.offset_step + math.ceil((epochs - self.epoch_offset) * self.steps_per_epoch)
