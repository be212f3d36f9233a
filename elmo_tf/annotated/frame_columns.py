"""Predicates and their roles in the columns of CoNLL-2005 and CoNLL-2012, which mark roles with brackets."""

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator

from elmo_tf.annotated import numbered_lines, tag_schemes, words
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.tag_schemes import Span
from elmo_tf.errors import InputError

_CELL = re.compile(r"(?:\(([^()*\s]+))?\*(\)?)")
_BEGIN, _END = "#begin document", "#end document"
_PREDICATE = re.compile(r"\(V\*")
_NOTHING = "-"
# CoNLL-2012: the word's column, the first that may have arguments, and the number of columns after those.
_WORD_2012, _ARGUMENTS_2012, _AFTER_2012 = 3, 11, 1

Row = tuple[Line, list[str]]  # a line and its columns


@dataclasses.dataclass(frozen=True)
class Frame:
    """A predicate of a sentence, and the role of each token, None without roles."""

    tokens: list[str]
    predicate: int  # its index in `tokens`
    tags: list[str] | None = None  # IOB2; the predicate itself is V, a continuation C-X, a reference R-X


def is_row(line: str) -> bool:
    """Whether a line may be the first of a file in these columns."""
    fields = line.split()
    return line.startswith(_BEGIN) or (
        len(fields) > 1 and (fields[-1] == _NOTHING or bool(_CELL.fullmatch(fields[-1])))
    )


def read(path: str | os.PathLike) -> Iterator[list[Frame]]:
    """Yields the frames of each sentence of a file, which share the list of its tokens; see `frames.read_frames`."""
    is_2012 = False
    for block in numbered_lines.blocks(path):
        is_2012 = is_2012 or block[0].text.startswith(_BEGIN)
        rows = [(line, words.split(line.text)) for line in block if not line.text.startswith((_BEGIN, _END))]
        for line, fields in rows:
            if len(fields) != len(rows[0][1]):
                raise line.wrong(f"{len(rows[0][1])} columns, as in the sentence's first line")
        if rows:
            yield (_sentence_2012 if is_2012 else _sentence_2005)(rows)


def _sentence_2012(rows: list[Row]) -> list[Frame]:
    line, first = rows[0]
    if len(first) < _ARGUMENTS_2012 + _AFTER_2012:
        raise line.wrong(f"{_ARGUMENTS_2012 + _AFTER_2012} columns or more")
    return _frames(rows, _WORD_2012, range(_ARGUMENTS_2012, len(first) - _AFTER_2012))


def _sentence_2005(rows: list[Row]) -> list[Frame]:
    """Finds the columns from the right: the argument columns, each with a predicate's bracket, then the predicates."""
    line, first = rows[0]
    target = len(first) - 1
    while target and any(_PREDICATE.match(fields[target]) for _, fields in rows):
        target -= 1
    predicates = sum(fields[target] != _NOTHING for _, fields in rows)
    if not target or predicates != len(first) - target - 1:
        raise line.wrong(
            "words, a column of predicates (- where there is none) and for each a column of arguments with (V*)"
        )
    return _frames(rows, 0, range(target + 1, len(first)))


def _frames(rows: list[Row], word: int, columns: Iterable[int]) -> list[Frame]:
    tokens = [words.word(fields[word]) or fields[word] for _, fields in rows]
    return [Frame(tokens, *_roles(rows, column)) for column in columns]


def _roles(rows: list[Row], column: int) -> tuple[int, list[str]]:
    """Returns the index of the predicate, and the tags in a column."""
    spans: list[Span] = []
    opened = None  # index and label of the open bracket
    for index, (line, fields) in enumerate(rows):
        cell = _CELL.fullmatch(fields[column])
        if not cell:
            raise line.wrong("arguments such as (A0*, *, *) or (A0*)", fields[column])
        label, ends = cell.groups()
        if (label and opened) or (ends and not label and not opened):
            problem = "begins inside another" if label else "ends that has not begun"
            raise InputError(line.location, f"a bracket {problem}: {fields[column]!r}")
        if label:
            opened = index, label
        if opened and ends:
            spans.append(Span(opened[0], index + 1, opened[1]))
            opened = None
    if opened:
        line, fields = rows[opened[0]]
        raise InputError(line.location, f"a bracket is not closed in its sentence: {fields[column]!r}")
    predicates = [start for start, _, kind in spans if kind == "V"]
    if not predicates:
        raise InputError(rows[0][0].location, f"column {column + 1} has no predicate (V*)")
    return predicates[0], tag_schemes.spans_to_iob2(spans, len(rows))
