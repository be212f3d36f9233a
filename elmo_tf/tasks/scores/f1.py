"""Counts of what is right, from which precision, recall and F1 are computed."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Counts:
    """What was found and is right, of what was found, of what there is. CEAFe and B-cubed count fractions."""

    recalled: float = 0  # what there is and was found
    gold: float = 0  # what there is
    precise: float = 0  # what was found and is right
    predicted: float = 0  # what was found

    def __add__(self, other: "Counts") -> "Counts":
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Counts(*(one + another for one, another in pairs))

    @property
    def recall(self) -> float:
        """In percent; 0 if there is nothing to find."""
        return 100 * self.recalled / self.gold if self.gold else 0.0

    @property
    def precision(self) -> float:
        """In percent; 0 if nothing was found."""
        return 100 * self.precise / self.predicted if self.predicted else 0.0

    @property
    def f1(self) -> float:
        """In percent; 0 if nothing is right."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def scores(self) -> dict[str, float]:
        """Returns recall, precision and F1 by name."""
        return {"recall": self.recall, "precision": self.precision, "f1": self.f1}
