"""Sentences with a class each: `label<TAB>sentence` a line."""

import dataclasses
import os

from elmo_tf.annotated import numbered_lines


@dataclasses.dataclass(frozen=True)
class Classified:
    """A sentence or phrase and its class; None: without one."""

    tokens: list[str]
    label: str | None = None


def read_classes(path: str | os.PathLike) -> list[Classified]:
    """Returns the sentences of a file with a label, a tab and a sentence a line; white space separates the tokens.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line without a label or a sentence; or if there is no sentence.
    """
    found = []
    for number, line in numbered_lines.numbered_lines(path):
        if not line.strip():
            continue
        label, tab, sentence = line.partition("\t")
        if not tab or not label.strip() or not sentence.split():
            raise numbered_lines.wrong_line(path, number, "a label, a tab and a sentence", line)
        found.append(Classified(sentence.split(), label.strip()))
    return numbered_lines.require_some(found, path, "sentence")


def read_sentences(path: str | os.PathLike) -> list[Classified]:
    """Returns sentences without labels, one a line; what stands before a tab is left out.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: if it cannot be read or has no sentence.
    """
    lines = (line.rpartition("\t")[2].split() for _, line in numbered_lines.numbered_lines(path))
    return numbered_lines.require_some([Classified(tokens) for tokens in lines if tokens], path, "sentence")
