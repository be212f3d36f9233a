"""F1 of semantic roles, as CoNLL-2005's `srl-eval.pl` computes it.

Carreras and Màrquez 2005, Introduction to the CoNLL-2005 Shared Task. An argument is correct if its label and all its
tokens are. The predicate itself (`V`) does not count. An argument in several pieces, where `C-X` continues the last
`X`, counts once.
"""

from collections.abc import Iterable, Sequence

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.scores import f1
from elmo_tf.tasks.scores.f1 import Counts

_PREDICATE = "V"
_CONTINUATION = "C-"

# A label and the pieces: first token, and the token after the last.
Argument = tuple[str, tuple[tuple[int, int], ...]]


def by_label(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Counts]:
    """Returns the counts of each label, in alphabetical order, given IOB2 tags of a sentence for each predicate."""
    return f1.by_label(map(arguments_of, gold), map(arguments_of, predicted))


def arguments_of(tags: Sequence[str]) -> list[Argument]:
    """Returns a predicate's arguments, without the predicate; a `C-X` without an `X` is a separate argument."""
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    for start, end, kind in tag_schemes.spans(tags):
        continued = [pieces for label, pieces in arguments if _CONTINUATION + label == kind]
        if continued:
            continued[-1].append((start, end))
        else:
            arguments.append((kind, [(start, end)]))
    return [(label, tuple(pieces)) for label, pieces in arguments if label != _PREDICATE]
