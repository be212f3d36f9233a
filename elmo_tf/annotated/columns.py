"""One token and its tag per line: named entities and chunks (CoNLL-2003, WikiGold, WNUT-17, Universal NER)."""

import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines, tag_schemes
from elmo_tf.annotated.numbered_lines import Line

_DOCUMENT = "-DOCSTART-"
_TAG = re.compile(r"O|[BILUES]-[^\W\d].*")  # not the last word of "We drove along I-95"


@dataclasses.dataclass(frozen=True)
class Tagged:
    """A sentence with a label for each token, or None without labels."""

    tokens: list[str]
    labels: list[str] | None = None


def read_columns(path: str | os.PathLike, column: int = -1) -> list[Tagged]:
    """Returns the sentences of a file with a token and a tag per line, and blank lines between sentences.

    Tabs or white space separate the columns; the first has the tokens, the one with index `column` the tags: BIOUL if
    the file has a tag `L-` or `U-` (or `E-` or `S-`, as BIOES calls them), otherwise IOB1 or IOB2. They become IOB2,
    where every span begins with `B-`. Lines of `-DOCSTART-` are ignored.
    """
    blocks = [rows for block in numbered_lines.blocks(path) if (rows := _rows(block, column))]
    bioul = tag_schemes.is_bioul(tag for rows in blocks for _, _, tag in rows)
    sentences = []
    for rows in blocks:
        tags = [tag for _, _, tag in rows]
        if bioul and (place := tag_schemes.misplaced(tags, bioul)) is not None:
            line, token, tag = rows[place]
            raise line.wrong("tags in an order that BIOUL allows", f"{token} {tag}")
        labels = tag_schemes.as_iob2(tags) if bioul else tag_schemes.spans_to_iob2(tag_schemes.spans(tags), len(tags))
        sentences.append(Tagged([token for _, token, _ in rows], labels))
    return numbered_lines.require_some(sentences, path, "sentence")


def read_tokens(path: str | os.PathLike, column: int = -1) -> list[Tagged]:
    """Returns sentences without labels: one per line, or in the first column, with blank lines between sentences.

    The file has columns if the lines before its first blank line all have one token, or all have equally many columns
    and a tag in the one with index `column`. If there is only one such line, all lines of the file must have the
    columns and the tag. Lines of `-DOCSTART-` are ignored.
    """
    texts = ([line.text for line in block] for block in numbered_lines.blocks(path))
    blocks = [kept for block in texts if (kept := [text for text in block if text.split()[0] != _DOCUMENT])]
    every = [text for block in blocks for text in block]
    first = blocks[0] if blocks else []
    if len(first) > 1 and all(len(text.split()) == 1 for text in first):
        return [Tagged([token for text in block for token in text.split()]) for block in blocks]
    judged = list(map(_fields, first if len(first) > 1 else every))
    if len(judged) > 1 and all(len(fields) == len(judged[0]) > 1 and _has_tag(fields, column) for fields in judged):
        numbered_lines.require_file(path)
        return [Tagged(sentence.tokens) for sentence in read_columns(path, column)]
    return numbered_lines.require_some([Tagged(text.split()) for text in every], path, "sentence")


def _fields(text: str) -> list[str]:
    """Returns the columns of a line."""
    return [one.strip() for one in text.split("\t")] if "\t" in text else re.split(" +", text.strip())


def _has_tag(fields: list[str], column: int) -> bool:
    return -len(fields) <= column < len(fields) and bool(_TAG.fullmatch(fields[column]))


def _rows(block: list[Line], column: int) -> list[tuple[Line, str, str]]:
    """Returns each line with its token and tag."""
    rows = []
    for line in block:
        fields = _fields(line.text)
        if fields[0] == _DOCUMENT:
            continue
        token = numbered_lines.one_token(fields[0])
        has_tag = len(fields) > 1 and -len(fields) <= column < len(fields) and tag_schemes.is_tag(fields[column])
        if not token or not has_tag:
            raise line.wrong("a token and a tag, O, B-... or I-...")
        rows.append((line, token, fields[column]))
    return rows
