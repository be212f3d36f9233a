"""Tables as spreadsheets, pandas and GLUE write them: cells separated by tabs, commas or semicolons."""

import csv
import itertools
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError

DELIMITERS = "\t,;"
_INSPECTED = 200  # lines used to recognize a comma-separated table
_NAME = re.compile(r"(\w[\w .#:/-]*)?")  # of a column; pandas' index has none


class Row(NamedTuple):
    """A row of a table, with the line at which it begins."""

    line: Line
    cells: list[str]


def cells_of(text: str, delimiter: str) -> list[str]:
    """Returns the cells of a table's first line, which may be quoted, without white space around them."""
    return [cell.strip() for cell in _cells(text, delimiter)]


def _cells(text: str, delimiter: str) -> list[str]:
    """Like `cells_of`, with white space; marks are literal in what `csv` does not read: a CR, a text of 130,000."""
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return text.split(delimiter)


def read(path: str | os.PathLike, delimiter: str) -> list[Row]:
    """Returns the nonblank rows of a table.

    A cell in quotation marks may have delimiters, line breaks, and marks, which are doubled. Tab-separated cells count
    as quoted only on evidence, because in GLUE's files marks are literal: the first line has quotation marks, a quoted
    cell has doubled marks, or the rows have equal numbers of cells only when read as quoted.

    Raises:
        InputError: naming the line of unmatched quotation marks, in tables with commas or semicolons.
    """
    lines = list(numbered_lines.lines(path))
    try:
        quoted = list(_quoted(lines, delimiter))
    except csv.Error as error:
        if delimiter != "\t":
            raise InputError(str(path), f"it cannot be read as a table separated by {delimiter!r}: {error}") from None
        quoted = []
    if delimiter != "\t":
        return quoted
    plain = [Row(line, line.text.split(delimiter)) for line in lines if line.text.strip()]
    return quoted if _is_quoted(plain, quoted) else plain


def _quoted(lines: Sequence[Line], delimiter: str) -> Iterator[Row]:
    reader = csv.reader((f"{line.text}\n" for line in lines), delimiter=delimiter, strict=True)
    begins = 0
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield Row(lines[begins], cells)
        begins = reader.line_num


def _is_quoted(plain: Sequence[Row], quoted: Sequence[Row]) -> bool:
    """Whether a tab-separated table's cells are quoted, given its rows under both assumptions."""
    if not _are_even(plain):
        return _are_even(quoted)
    if len(plain) != len(quoted):
        return False
    cells = zip(*(itertools.chain(*(row.cells for row in rows)) for rows in (plain, quoted)), strict=False)
    return plain[0].cells != quoted[0].cells or any(cell != inner and '"' in inner for cell, inner in cells)


def _are_even(rows: Sequence[Row]) -> bool:
    return len({len(row.cells) for row in rows}) == 1


def is_csv(path: str | os.PathLike) -> bool:
    """Whether a file's name ends in `.csv`, compression aside."""
    return ".csv" in pathlib.Path(path).suffixes[-2:]


def unquoted(cell: str) -> str:
    """Returns a tab-separated cell without quotation marks around it, if those inside are doubled."""
    inner = cell[1:-1]
    is_quoted = len(cell) > 3 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted and '"' in inner else cell


def are_tabbed(lines: Iterable[Line]) -> bool:
    """Whether several lines look like rows of a table: all have the same number of tabs."""
    counts = [line.text.count("\t") for line in lines]
    return len(counts) > 1 and len(set(counts)) == 1 and counts[0] > 0


def comma_cells(path: str | os.PathLike) -> list[str] | None:
    """Returns the first line's cells if a file is a table with commas or semicolons; None if it is not.

    It is if its name ends in `.csv`, or all lines have the same number of cells and those of the first could be column
    names: in running text, a space follows a comma.
    """
    if is_csv(path):
        first = numbered_lines.first_line(path)
        return max((cells_of(first, delimiter) for delimiter in DELIMITERS), key=len)
    lines = list(itertools.islice(numbered_lines.nonblank_lines(path), _INSPECTED))
    for delimiter in DELIMITERS.replace("\t", ""):
        names = _cells(lines[0].text, delimiter) if lines else []
        if len(names) > 1 and all(map(_NAME.fullmatch, names)):
            # A quoted cell may extend beyond the inspected lines.
            rows = list(_until_error(_quoted(lines, delimiter)))
            if len(rows) > 1 and _are_even(rows):
                return names
    return None


def _until_error(rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except csv.Error:
        return
