"""A token and its tag a line: named entities and chunks (CoNLL-2003, WikiGold, WNUT-17, Universal NER)."""

import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines, tag_schemes

_DOCUMENT = "-DOCSTART-"
_TAG = re.compile(r"O|[BILUES]-[^\W\d].*")  # not the last word of "We drove along I-95"
_EXPECTED = "a token and a tag, O, B-... or I-..."


@dataclasses.dataclass(frozen=True)
class Tagged:
    """A sentence with a label for each token; None: without labels."""

    tokens: list[str]
    labels: list[str] | None = None


def read_columns(path: str | os.PathLike, scheme: str = "auto", column: int = -1) -> list[Tagged]:
    """Returns the sentences of a file with a token and a tag a line, and empty lines between sentences.

    Tabs or white space separate the columns; the first has the tokens. Tags become IOB2, where every span begins with
    `B-`. Lines of `-DOCSTART-` are left out.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).
        scheme: `"IOB1"`, `"IOB2"`, `"BIOUL"`, or `"auto"`: BIOUL if the file has a tag `L-` or `U-` (or, as these are
            also called, `E-` or `S-`), otherwise either of the other two.
        column: which column has the tags; the last by default.

    Raises:
        InputError: naming the line without a tag, or with one that cannot follow the tag before it; or if there is no
            sentence.
    """
    blocks = [_read_block(path, block, column) for block in numbered_lines.blocks(path)]
    blocks = [rows for rows in blocks if rows]
    if scheme == "auto":
        scheme = tag_schemes.scheme_of(tag for rows in blocks for _, _, tag in rows)
    sentences = []
    for rows in blocks:
        try:
            labels = tag_schemes.to_iob2([tag for _, _, tag in rows], scheme)
        except tag_schemes.WrongTag as wrong:
            number, token, tag = rows[wrong.place]
            raise numbered_lines.wrong_line(path, number, wrong.expected, f"{token} {tag}") from None
        sentences.append(Tagged([token for _, token, _ in rows], labels))
    return numbered_lines.require_some(sentences, path, "sentence")


def read_tokens(path: str | os.PathLike) -> list[Tagged]:
    """Returns sentences without labels: one a line, or the first of several columns with empty lines between sentences.

    The lines before the first empty line decide. If there are several, all with as many columns, the last of which is a
    tag, or with a token each, these are columns. If there is one, all lines of the file decide.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: if it cannot be read or has no sentence, or a line of columns has no tag.
    """
    blocks = [[line.split() for _, line in block] for block in numbered_lines.blocks(path)]
    lines = [fields for block in blocks for fields in block]
    first = next((block for block in blocks if block[0][0] != _DOCUMENT), [])
    if len(first) > 1 and all(len(fields) == 1 for fields in first):
        return [Tagged([token for fields in block for token in fields]) for block in blocks]
    judged = first if len(first) > 1 else [fields for fields in lines if fields[0] != _DOCUMENT]
    tags = [fields[-1] for fields in judged if len(fields) == len(judged[0]) > 1 and _TAG.fullmatch(fields[-1])]
    if len(tags) == len(judged) > 1:
        return [Tagged(sentence.tokens) for sentence in read_columns(path)]
    return numbered_lines.require_some([Tagged(fields) for fields in lines], path, "sentence")


def _read_block(path: str | os.PathLike, block: list[tuple[int, str]], column: int) -> list[tuple[int, str, str]]:
    """Returns number, token and tag of each line."""
    rows = []
    for number, line in block:
        fields = line.split("\t") if "\t" in line else line.split()
        if fields[0] == _DOCUMENT:
            continue
        token = numbered_lines.one_token(fields[0])
        if (
            not token
            or len(fields) < 2
            or not -len(fields) <= column < len(fields)
            or not tag_schemes.is_tag(fields[column])
        ):
            raise numbered_lines.wrong_line(path, number, _EXPECTED, line)
        rows.append((number, token, fields[column]))
    return rows
