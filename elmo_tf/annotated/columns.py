"""A token and a tag a line, as files of named entities are (CoNLL-2003, WikiGold, WNUT-17)."""

import os
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines


class Tagged(NamedTuple):
    """A sentence with a label for each token."""

    tokens: list[str]
    labels: list[str]


def read_columns(path: str | os.PathLike, argument: str = "--train") -> list[Tagged]:
    """Returns the sentences of a file with a token and a tag a line, between white space, as BIO files are.

    Of more columns the first and the last count. Tags may be I-only (IOB1); then an entity's first becomes B-.

    Raises:
        InputError: naming the line whose tag is missing or none of `O`, `B-...`, `I-...`; or if there is no sentence.
    """
    sentences = []
    for block in numbered_lines.blocks(path, argument):
        tokens, labels = [], []
        for number, line in block:
            fields = line.split("\t") if "\t" in line else line.split()
            if fields[0] == "-DOCSTART-":
                continue
            if len(fields) < 2 or not (fields[-1] == "O" or fields[-1][:2] in ("B-", "I-")):
                raise numbered_lines.wrong_line(argument, path, number, "a token and a tag, O, B-... or I-...", line)
            tokens.append(numbered_lines.one_token(fields[0]))
            labels.append(fields[-1])
        sentences.append(Tagged(tokens, _begun(labels)))
    return numbered_lines.require_some([one for one in sentences if one.tokens], argument, path, "sentence")


def _begun(labels: list[str]) -> list[str]:
    """Returns the tags with B- wherever an entity begins."""
    before = ["O", *labels]
    return [
        f"B-{label[2:]}" if label[:2] == "I-" and last[2:] != label[2:] else label
        for last, label in zip(before, labels, strict=False)
    ]
