"""A token and a tag a line, the format of named entities (CoNLL-2003, WikiGold, WNUT-17)."""

import os
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines


class Tagged(NamedTuple):
    """A sentence with a label for each token."""

    tokens: list[str]
    labels: list[str]


def read_columns(path: str | os.PathLike) -> list[Tagged]:
    """Returns the sentences of a file with a token and a BIO tag a line, and empty lines between sentences.

    Tabs or white space separate the columns; the first has the tokens, the last the tags. I-only tags (IOB1) become
    BIO: an entity's first I- becomes B-.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line without a tag `O`, `B-...` or `I-...`; or if there is no sentence.
    """
    sentences = []
    for block in numbered_lines.blocks(path):
        tokens, labels = [], []
        for number, line in block:
            fields = line.split("\t") if "\t" in line else line.split()
            if fields[0] == "-DOCSTART-":
                continue
            if len(fields) < 2 or not (fields[-1] == "O" or fields[-1][:2] in ("B-", "I-")):
                raise numbered_lines.wrong_line(path, number, "a token and a tag, O, B-... or I-...", line)
            tokens.append(numbered_lines.one_token(fields[0]))
            labels.append(fields[-1])
        sentences.append(Tagged(tokens, _to_bio(labels)))
    return numbered_lines.require_some([one for one in sentences if one.tokens], path, "sentence")


def _to_bio(labels: list[str]) -> list[str]:
    """Returns the tags with B- wherever an entity begins."""
    before = ["O", *labels]
    return [
        f"B-{label[2:]}" if label[:2] == "I-" and last[2:] != label[2:] else label
        for last, label in zip(before, labels, strict=False)
    ]
