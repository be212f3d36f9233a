"""Converts between steps and passes over the text."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Epochs:
    """Counts epochs, also when the size of a step has changed in the middle of training."""

    tokens_per_epoch: int  # predicted in each direction by a pass over the text: every word, a boundary per sentence
    tokens_per_step: int  # boundaries included, each counted once for both directions
    # Since when a step has so many tokens: at which step, after how many epochs.
    offset_step: int = 0
    epoch_offset: float = 0.0

    @property
    def steps_per_epoch(self) -> float:
        """Steps per pass over the text."""
        return self.tokens_per_epoch / self.tokens_per_step

    def at(self, step: int) -> float:
        """Returns how many epochs `step` steps are."""
        return self.epoch_offset + (step - self.offset_step) / self.steps_per_epoch

    def step_after(self, epochs: float) -> int:
        """Returns how many steps, those of another size included, so many epochs take."""
        return self.offset_step + math.ceil((epochs - self.epoch_offset) * self.steps_per_epoch)
