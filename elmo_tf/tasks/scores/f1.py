"""Counts of correct predictions, from which precision, recall and F1 are computed."""

import collections
import dataclasses
from collections.abc import Hashable, Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Counts:
    """The numbers of gold and predicted items, and of correct items among each; fractions for CEAFe and B-cubed."""

    recalled: float = 0  # gold and predicted
    gold: float = 0
    precise: float = 0  # predicted and correct
    predicted: float = 0

    def __add__(self, other: "Counts") -> "Counts":
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Counts(*(ours + theirs for ours, theirs in pairs))

    @property
    def recall(self) -> float:
        """In percent; 0 if there are no gold items."""
        return 100 * self.recalled / self.gold if self.gold else 0.0

    @property
    def precision(self) -> float:
        """In percent; 0 if nothing was predicted."""
        return 100 * self.precise / self.predicted if self.predicted else 0.0

    @property
    def f1(self) -> float:
        """In percent; 0 if nothing is correct."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def scores(self) -> dict[str, float]:
        """Returns recall, precision and F1 by name."""
        return {"recall": self.recall, "precision": self.precision, "f1": self.f1}


def by_label(
    gold: Iterable[Sequence[tuple[str, Hashable]]], predicted: Iterable[Sequence[tuple[str, Hashable]]]
) -> dict[str, Counts]:
    """Returns the counts of each label, in alphabetical order, given the items of each example.

    An item is a label and its location. A predicted item is correct if it is among its example's gold items.
    """
    right: collections.Counter[str] = collections.Counter()
    num_gold, num_predicted = right.copy(), right.copy()
    for gold_items, predicted_items in zip(gold, predicted, strict=True):
        right.update(label for label, _ in set(gold_items) & set(predicted_items))
        num_gold.update(label for label, _ in gold_items)
        num_predicted.update(label for label, _ in predicted_items)
    labels = sorted(num_gold.keys() | num_predicted.keys())
    return {label: Counts(right[label], num_gold[label], right[label], num_predicted[label]) for label in labels}
