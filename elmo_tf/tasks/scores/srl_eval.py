"""F1 of semantic roles, as CoNLL-2005's `srl-eval.pl` computes it.

Carreras and Màrquez 2005, Introduction to the CoNLL-2005 Shared Task. An argument is right if its label and all its
tokens are. The predicate itself (`V`) does not count. An argument in several pieces, where `C-X` continues the last
`X`, counts once.
"""

import collections
from collections.abc import Iterable, Sequence

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.scores.f1 import Counts

_PREDICATE = "V"
_CONTINUATION = "C-"

# A label and the pieces: first token, and the token after the last.
Argument = tuple[str, tuple[tuple[int, int], ...]]


def by_label(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Counts]:
    """Returns the counts of each label, in alphabetical order, given IOB2 tags of a sentence for each predicate."""
    right: collections.Counter[str] = collections.Counter()
    num_gold, num_predicted = right.copy(), right.copy()
    for pair in zip(gold, predicted, strict=True):
        gold_arguments, predicted_arguments = map(arguments_of, pair)
        right.update(label for label, _ in set(gold_arguments) & set(predicted_arguments))
        num_gold.update(label for label, _ in gold_arguments)
        num_predicted.update(label for label, _ in predicted_arguments)
    labels = sorted(num_gold.keys() | num_predicted.keys())
    return {label: Counts(right[label], num_gold[label], right[label], num_predicted[label]) for label in labels}


def arguments_of(tags: Sequence[str]) -> list[Argument]:
    """Returns a predicate's arguments, without the predicate; a `C-X` without an `X` is an argument of its own."""
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    for start, end, kind in tag_schemes.spans(tags):
        continued = [pieces for label, pieces in arguments if _CONTINUATION + label == kind]
        if continued:
            continued[-1].append((start, end))
        else:
            arguments.append((kind, [(start, end)]))
    return [(label, tuple(pieces)) for label, pieces in arguments if label != _PREDICATE]
