"""F1 of semantic roles, as CoNLL-2005's `srl-eval.pl` computes it.

Carreras and Màrquez 2005, Introduction to the CoNLL-2005 Shared Task. An argument is right if its label and all its
tokens are. The predicate itself (`V`) does not count. An argument in several pieces, where `C-X` continues the last
`X`, counts as one.
"""

import collections
from collections.abc import Iterable, Sequence

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.scores.f1 import Counts

_PREDICATE = "V"
_CONTINUATION = "C-"

# A label and the pieces: first token, and the one after the last.
Argument = tuple[str, tuple[tuple[int, int], ...]]


def by_label(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Counts]:
    """Returns the counts of each label, in alphabetical order, given IOB2 tags of a sentence for each predicate."""
    right, expected, answered = (collections.Counter() for _ in range(3))
    for tags, found in zip(gold, predicted, strict=True):
        arguments = [arguments_of(one) for one in (tags, found)]
        correct = set(arguments[0]) & set(arguments[1])
        for counter, some in ((right, correct), (expected, arguments[0]), (answered, arguments[1])):
            counter.update(label for label, _ in some)
    labels = sorted(expected.keys() | answered.keys())
    return {one: Counts(right[one], expected[one], right[one], answered[one]) for one in labels}


def arguments_of(tags: Sequence[str]) -> list[Argument]:
    """Returns one predicate's arguments, without the predicate; a `C-X` without an `X` is an argument of its own."""
    found: list[tuple[str, list[tuple[int, int]]]] = []
    for start, end, kind in tag_schemes.spans(tags):
        continued = [pieces for label, pieces in found if _CONTINUATION + label == kind]
        if continued:
            continued[-1].append((start, end))
        else:
            found.append((kind, [(start, end)]))
    return [(label, tuple(pieces)) for label, pieces in found if label != _PREDICATE]
