"""Predicates and their roles in the columns of CoNLL-2005 and CoNLL-2012, where brackets mark the roles."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines, tag_schemes
from elmo_tf.annotated.tag_schemes import Span

_CELL = re.compile(r"((?:\([^()*\s]+)*)\*(\)*)")
_BEGIN, _END = "#begin document", "#end document"
_PREDICATE = re.compile(r"\(V\*")
_NOTHING = "-"
# CoNLL-2012: the word's column, the first that may have arguments, and how many stand behind those.
_WORD_2012, _ARGUMENTS_2012, _BEHIND_2012 = 3, 11, 1

# A line's number and its columns.
Row = tuple[int, list[str]]


class Roles(NamedTuple):
    """The place of a predicate, and a tag of IOB2 for each word."""

    predicate: int
    tags: list[str]


def is_row(line: str) -> bool:
    """Whether a line may be the first of such a file."""
    fields = line.split()
    return line.startswith(_BEGIN) or (
        len(fields) > 1 and (fields[-1] == _NOTHING or bool(_CELL.fullmatch(fields[-1])))
    )


def read(path: str | os.PathLike) -> Iterator[tuple[list[str], list[Roles]]]:
    """Yields words and roles of each sentence of a file; see `frames.read_frames`.

    Raises:
        InputError: naming the line.
    """
    is_2012 = False
    for block in numbered_lines.blocks(path):
        is_2012 = is_2012 or block[0][1].startswith(_BEGIN)
        lines = [one for one in block if not one[1].startswith((_BEGIN, _END))]
        rows = [(number, line.split()) for number, line in lines]
        for number, fields in rows:
            if len(fields) != len(rows[0][1]):
                expected = f"{len(rows[0][1])} columns, as in the sentence's first line"
                raise numbered_lines.wrong_line(path, number, expected, " ".join(fields))
        if rows:
            yield (_sentence_2012 if is_2012 else _sentence_2005)(path, rows)


def _sentence_2012(path: str | os.PathLike, rows: list[Row]) -> tuple[list[str], list[Roles]]:
    width = len(rows[0][1])
    if width < _ARGUMENTS_2012 + _BEHIND_2012:
        expected = f"{_ARGUMENTS_2012 + _BEHIND_2012} columns or more"
        raise numbered_lines.wrong_line(path, rows[0][0], expected, " ".join(rows[0][1]))
    columns = range(_ARGUMENTS_2012, width - _BEHIND_2012)
    return [fields[_WORD_2012] for _, fields in rows], [_roles(path, rows, column) for column in columns]


def _sentence_2005(path: str | os.PathLike, rows: list[Row]) -> tuple[list[str], list[Roles]]:
    """Reads the columns from the right: those with a predicate's bracket, and before them the predicates."""
    number, first = rows[0]
    target = len(first) - 1
    while target and any(_PREDICATE.match(fields[target]) for _, fields in rows):
        target -= 1
    predicates = sum(fields[target] != _NOTHING for _, fields in rows)
    if not target or predicates != len(first) - target - 1:
        expected = "words, a column of predicates (- where there is none) and for each a column of arguments with (V*)"
        raise numbered_lines.wrong_line(path, number, expected, " ".join(first))
    return [fields[0] for _, fields in rows], [_roles(path, rows, one) for one in range(target + 1, len(first))]


def _roles(path: str | os.PathLike, rows: list[Row], column: int) -> Roles:
    """Returns the roles in a column."""
    found: list[Span] = []
    begun = None  # place and label of the bracket that is open
    for place, (number, fields) in enumerate(rows):
        cell = _CELL.fullmatch(fields[column])
        if not cell:
            raise numbered_lines.wrong_line(path, number, "arguments such as (A0*, *, *) or (A0*)", fields[column])
        begins, ends = cell.groups()
        if begins.count("(") + bool(begun) > 1:
            expected = "one role, behind the end of the one before it: roles do not overlap"
            raise numbered_lines.wrong_line(path, number, expected, fields[column])
        if begins:
            begun = place, begins[1:]
        if len(ends) > bool(begun):
            raise numbered_lines.wrong_line(path, number, "a bracket that begins before one ends", fields[column])
        if begun and ends:
            found.append(Span(begun[0], place + 1, begun[1]))
            begun = None
    if begun:
        number, fields = rows[begun[0]]
        raise numbered_lines.wrong_line(path, number, "a bracket that is closed in the sentence", fields[column])
    predicates = [start for start, _, kind in found if kind == "V"]
    if not predicates:
        raise numbered_lines.wrong_line(path, rows[0][0], f"a predicate (V*) in column {column + 1}", "none")
    return Roles(predicates[0], tag_schemes.spans_to_iob2(found, len(rows)))
