"""Sentences with a class each: `label<TAB>sentence`, one per line."""

import dataclasses
import os

from elmo_tf.annotated import numbered_lines


@dataclasses.dataclass(frozen=True)
class Classified:
    """A sentence or phrase and its class, None if it has none."""

    tokens: list[str]
    label: str | None = None


def read_classes(path: str | os.PathLike) -> list[Classified]:
    """Returns the sentences of a file with a label, a tab and a sentence per line; white space separates the tokens."""
    found = []
    for line in numbered_lines.filled_lines(path):
        label, _, sentence = line.text.partition("\t")
        if not label.strip() or not sentence.split():
            raise line.wrong("a label, a tab and a sentence")
        found.append(Classified(sentence.split(), label.strip()))
    return numbered_lines.require_some(found, path, "sentence")


def read_sentences(path: str | os.PathLike) -> list[Classified]:
    """Returns sentences without labels, one per line; text before a tab is ignored."""
    sentences = (line.text.rpartition("\t")[2].split() for line in numbered_lines.lines(path))
    return numbered_lines.require_some([Classified(tokens) for tokens in sentences if tokens], path, "sentence")
