"""Which column of a file has the tokens and which the tags, detected from the first sentences."""

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from elmo_tf.annotated import tag_schemes
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading_options import Column, Reading
from elmo_tf.errors import InputError

DOCUMENT = "-DOCSTART-"
_INSPECTED = 200  # sentences from which the columns are detected
_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")  # of a token's language, as in WikiANN
_INDEX = re.compile(r"\d+([-.]\d+)?")  # of a word, a multiword token (3-4) or an empty node (3.1)
_TOKEN_NAMES = ("token", "tokens", "word", "words", "form")
_TAG_NAMES = ("tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags")


class Row(NamedTuple):
    """A line and its columns."""

    line: Line
    fields: list[str]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a file, as indices from 0; negative indices count from the right."""

    token: int = 0
    tag: int | None = -1  # None: there are no tags
    is_indexed: bool = False  # whether the first column counts the words of each sentence from 1
    width: int = 0  # the number of columns of the longest line
    prefix: str = ""  # before every token
    header: int = 0  # the number of the header's line; 0 without one

    def is_row(self, row: Row) -> bool:
        """Whether a line that starts with `#` is a token row rather than a comment."""
        is_wide = len(row.fields) == self.width and not self.is_indexed
        return is_wide and (self.tag is None or tag_schemes.is_tag(row.fields[self.tag]))


def fields_of(text: str) -> list[str]:
    """Returns the columns of a line, which tabs separate, or spaces where there is no tab."""
    return [field.strip() for field in text.split("\t")] if "\t" in text else re.split(" +", text.strip())


def find(path: str | os.PathLike, blocks: Sequence[Sequence[Row]], reading: Reading) -> Layout:
    """Returns the layout of a file, given its sentences without comments.

    Raises `InputError` if several columns could have the tags or the tokens, or a name is not in the header.
    """
    blocks = blocks[:_INSPECTED]
    header = blocks[0][0] if blocks else None
    if header and (isinstance(reading.token_column, str) or isinstance(reading.tag_column, str) or is_header(header)):
        blocks = list(filter(None, [blocks[0][1:], *blocks[1:]]))
    else:
        header = None
    rows = [row for block in blocks for row in block]
    width = max((n for row in rows for n, field in enumerate(row.fields, 1) if field), default=0)
    header_number = header.line.number if header else 0
    names = [] if header is None else header.fields
    if width == 1:
        _index(path, reading.token_column, names)
        return Layout(tag=None, width=1, prefix=_prefix(rows, 0), header=header_number)
    chosen_columns = {name: _index(path, getattr(reading, f"{name}_column"), names) for name in ("token", "tag")}
    for name, column in chosen_columns.items():
        if column is not None and not -width <= column < width:
            problem = f"no column {column} for --{name}-column: the lines have {width}, counted from 0"
            raise InputError(str(path), problem)
    is_indexed = has_indices(blocks)
    first = int(is_indexed)
    tag = _tag_column(path, rows, width, first) if chosen_columns["tag"] is None else chosen_columns["tag"]
    token = chosen_columns["token"]
    if token is None:
        token = first if tag != first else _token_column(path, rows, width, first)
    return Layout(token, tag, is_indexed, width, _prefix(rows, token), header_number)


def is_header(row: Row) -> bool:
    """Whether the columns of a line are called as those of tokens and tags usually are."""
    names = {name.lower() for name in row.fields}
    return "\t" in row.line.text and bool(names & set(_TOKEN_NAMES) and names & set(_TAG_NAMES))


def _index(path: str | os.PathLike, column: Column | None, names: list[str]) -> int | None:
    """Returns a column that the user or a header names as an index."""
    if isinstance(column, str):
        if column not in names:
            raise InputError(str(path), f"no column is called {column!r}; the first line has {', '.join(names)}")
        return names.index(column)
    return column


def has_indices(blocks: Sequence[Sequence[Row]]) -> bool:
    """Whether the first of three columns or more, between tabs, counts the words of each sentence."""
    numbers = [[row.fields[0] for row in block if row.fields[0].isdecimal()] for block in blocks]
    counted = all(column and column == [str(n) for n in range(1, len(column) + 1)] for column in numbers)
    rows = [row for block in blocks for row in block]
    are_indices = all(row.line.text.count("\t") > 1 and _INDEX.fullmatch(row.fields[0]) for row in rows)
    return bool(rows) and counted and are_indices


def _tag_column(path: str | os.PathLike, rows: list[Row], width: int, first: int) -> int | None:
    """Returns the column of tags: the last, or the first after indices and tokens; None if there are no tags."""
    rows = [row for row in rows if not first or row.fields[0].isdecimal()]
    if not rows or width < 2:
        return None
    if not first and all(len(row.fields) > 1 and tag_schemes.is_tag(row.fields[:width][-1]) for row in rows):
        return -1
    counts = {
        column: sum(len(row.fields) > column and tag_schemes.is_tag(row.fields[column]) for row in rows)
        for column in range(first, width)
    }
    # If no column is complete, take the one with the most tags; the reader then reports the line without one.
    candidates = [column for column, count in counts.items() if count == max(counts.values()) > len(rows) / 2]
    if len(candidates) > 1 and not first:  # after indices, GermEval's nested entities follow
        shown = " or ".join(f"{rows[0].fields[column]!r} (--tag-column {column})" for column in candidates)
        raise InputError(str(path), f"several columns could have the tags: line {rows[0].line.number} has {shown}")
    return candidates[0] if candidates else None


def _token_column(path: str | os.PathLike, rows: list[Row], width: int, tag: int) -> int:
    """Returns the column of tokens where the tags are in the first."""
    if width - tag > 2:
        row = rows[0]
        shown = " or ".join(f"{row.fields[column]!r} (--token-column {column})" for column in range(tag + 1, width))
        raise InputError(str(path), f"several columns could have the tokens: line {row.line.number} has {shown}")
    return tag + 1


def _prefix(rows: list[Row], column: int) -> str:
    """Returns the prefix that all tokens have; "" if they have none."""
    tokens = [row.fields[column] for row in rows if -len(row.fields) <= column < len(row.fields)]
    match = _PREFIX.match(tokens[0]) if len(tokens) > 1 else None
    return match[0] if match and all(token.startswith(match[0]) for token in tokens) else ""
