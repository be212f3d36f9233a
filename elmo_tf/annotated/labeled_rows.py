"""Rows of one or two sentences with a label: JSON lines, Parquet, and tables, with names or in a fixed order."""

import collections
import itertools
import logging
import math
import os
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_tf.annotated import named_rows, numbered_lines, tables
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading_options import Reading
from elmo_tf.annotated.tables import Row
from elmo_tf.errors import InputError

_NUMBER = re.compile(r"-?\d+(\.\d+)?")

_log = logging.getLogger("elmo_tf")


class Schema(NamedTuple):
    """The values that a reader needs from each row: one or two sentences, and a label."""

    texts: tuple[tuple[str, ...], ...]  # names in published data sets; a row has all names of one tuple
    labels: tuple[str, ...]  # likewise; a row has one of these
    sentences: str  # columns of a table without names, in messages
    columns: str  # likewise, with a label
    unknown: tuple[str, ...] = ("-1",)  # values that mean no label

    def expected(self, labeled: bool) -> str:
        """Describes a line of a table without names."""
        columns = f"{self.columns} separated by tabs"
        return columns if labeled else f"{self.sentences}, or {columns}; all lines alike"


class Example(NamedTuple):
    """A row, with the names of its sentences, and its label; None unless labels are read."""

    line: Line
    values: Mapping[str, Any]
    texts: tuple[str, ...]
    label: str | None


class _Names(NamedTuple):
    texts: tuple[str, ...]
    label: str


def read_examples(path: str | os.PathLike, schema: Schema, reading: Reading, labeled: bool) -> Iterator[Example]:
    """Yields the rows of JSON lines, Parquet or a table; if `labeled`, those that have a label.

    The first line of a table names its columns, or each line has a label and the sentences, separated by tabs. Unless
    `labeled`, labels are not read, and a line may have only the sentences. A label may be an index into
    `reading.labels`. A warning counts the rows without a label.
    """
    if len(reading.text_columns) not in (0, len(schema.texts[0])):
        raise InputError("text_columns", f"names of {schema.sentences}", reading.text_columns)
    unlabeled, num_rows = collections.Counter[str](), 0
    for line, names, values in _rows(path, schema, reading, labeled):
        num_rows += 1
        label = _label(line, names.label, values) if labeled else None
        if label in schema.unknown:
            unlabeled[label] += 1
            continue
        if label is not None and label.isdecimal():
            label = named_rows.named_label(line, label, reading.labels)
        yield Example(line, values, names.texts, label)
    if unlabeled:
        message = "warning: %s: %d of %d rows have no label (%s): left out"
        _log.warning(message, path, unlabeled.total(), num_rows, ", ".join(sorted(unlabeled)))


def _rows(
    path: str | os.PathLike, schema: Schema, reading: Reading, labeled: bool
) -> Iterator[tuple[Line, _Names, Mapping[str, Any]]]:
    """Yields each row's line, the names of the values needed, and all values; None for missing ones of a table."""
    if not named_rows.has_named_values(path):
        names, header, rows, _ = _table(path, schema, reading, labeled)
        for line, cells in rows:
            if any(cell.strip() for cell in cells[len(header) :]):
                raise line.error(f"{len(header)} columns, as in the first line")
            yield line, names, dict(itertools.zip_longest(header, cells[: len(header)]))
        return
    names_of: dict[tuple[str, ...], _Names] = {}
    for line, values in named_rows.read(path):
        keys = tuple(values)
        if keys not in names_of:
            names_of[keys] = _find_names(line, keys, schema, reading, labeled)
        yield line, names_of[keys], values


def is_running_text(path: str | os.PathLike, schema: Schema, reading: Reading) -> bool:
    """Whether a file without labels has only sentences, one per line; `InputError` for an unreadable table."""
    if len(schema.texts[0]) > 1 or named_rows.has_named_values(path):
        return False
    table = _table(path, schema, reading, labeled=False)
    return not table.has_names and len(table.header) == 1


class _Table(NamedTuple):
    names: _Names
    header: Sequence[str]
    rows: Sequence[Row]
    has_names: bool = True  # in the first line


def _table(path: str | os.PathLike, schema: Schema, reading: Reading, labeled: bool) -> _Table:
    """Returns the rows of a table and the names of its columns; a file of only sentences has a single column."""
    first = next(numbered_lines.nonblank_lines(path), Line(str(path), 1, ""))
    for delimiter in tables.DELIMITERS:
        header = tables.cells_of(first.text, delimiter)
        if _has_texts(path, header, schema, reading):
            names = _find_names(first, header, schema, reading, labeled)
            return _Table(names, header, tables.read(path, delimiter)[1:])
    has_tabs, is_chosen = "\t" in first.text, reading.text_columns or reading.label_column
    if cells := tables.comma_cells(path) or (is_chosen and (labeled or has_tabs) and tables.cells_of(first.text, "\t")):
        raise _lacking(first, cells, schema, reading, labeled)
    return _table_without_names(path, schema, labeled, has_tabs)


def _table_without_names(path: str | os.PathLike, schema: Schema, labeled: bool, has_tabs: bool) -> _Table:
    order = (schema.labels[0], *schema.texts[0])
    if len(order) == 2 and not has_tabs and not labeled:  # running text, in which quotation marks are literal
        rows = [Row(line, line.text.split("\t")) for line in numbered_lines.nonblank_lines(path)]
    else:
        rows = tables.read(path, "\t")
    widths = {len(order)} if labeled else {len(order), len(order) - 1}
    for line, cells in rows:
        # All rows have as many columns as the first, apart from empty ones at the end.
        widths &= {max((number for number, cell in enumerate(cells, 1) if cell.strip()), default=0)}
        if not widths:
            raise line.error(schema.expected(labeled))
    if widths == {len(order)} and _are_in_another_order([row.cells for row in rows]):
        remedy = f"name its columns in a first line: {', '.join(order)}"
        raise rows[0].line.error(f"{schema.columns} in this order; {remedy}")
    return _Table(_Names(schema.texts[0], schema.labels[0]), order[-min(widths) :], rows, has_names=False)


def _are_in_another_order(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows of a label and sentences have the label last, or column names in the first row.

    Labels are last if only the first column has spaces; the first row has names if all other labels are numbers.
    """
    first, last = [row[0].strip() for row in rows], [row[-1].strip() for row in rows]
    are_numbers = [_NUMBER.fullmatch(label) is not None for label in first]
    return (any(" " in text for text in first) and not any(" " in text for text in last)) or (
        len(rows) > 1 and are_numbers == [False] + [True] * (len(rows) - 1)
    )


def _has_texts(path: str | os.PathLike, header: Sequence[str], schema: Schema, reading: Reading) -> bool:
    """Whether the first line of a file names the columns of sentences."""
    if reading.text_columns:
        return set(reading.text_columns) <= set(header)
    is_table = len(header) > 1 or pathlib.Path(path).suffix in (".csv", ".tsv")
    names = {name.lower() for name in header}
    return is_table and any(names.issuperset(texts) for texts in schema.texts)


def _find_names(line: Line, keys: Sequence[str], schema: Schema, reading: Reading, labeled: bool) -> _Names:
    """Returns the names of a row's sentences and of its label, which is read if `labeled`."""
    known = {key.strip().lower(): key for key in reversed(keys)}
    texts = reading.text_columns or next((texts for texts in schema.texts if known.keys() >= set(texts)), ())
    label = reading.label_column or next((label for label in schema.labels if label in known), "")
    names = _Names(tuple(known.get(text, text) for text in texts), known.get(label, label))
    wanted = (*names.texts, names.label) if labeled else names.texts
    if not texts or not set(wanted) <= set(keys):
        raise _lacking(line, keys, schema, reading, labeled)
    if several := [name for name in wanted if keys.count(name) > 1]:
        raise InputError(line.location, f"several columns are called {several[0]!r}")
    return names


def _lacking(line: Line, keys: Sequence[str], schema: Schema, reading: Reading, labeled: bool) -> InputError:
    """Returns the error for a row, or a table's first line, that lacks the sentences or the label."""
    known = {key.strip().lower() for key in keys}
    missing, options = [column for column in reading.text_columns if column not in keys], []
    if not reading.text_columns and not any(known.issuperset(names) for names in schema.texts):
        missing.append(" or ".join(map(" and ".join, schema.texts)))
        options.append("--text-column")
    if labeled and reading.label_column and reading.label_column not in keys:
        missing.append(reading.label_column)
    if labeled and not reading.label_column and not known & set(schema.labels):
        missing.append(" or ".join(schema.labels))
        options.append("--label-column")
    return named_rows.lacking(line, keys, missing, f"{' and '.join(options)} can give other names" if options else "")


def _label(line: Line, name: str, values: Mapping[str, Any]) -> str:
    """Returns a row's label as text: a whole number without the fraction that pandas adds if labels are missing."""
    stored = values[name]
    if isinstance(stored, float) and math.isfinite(stored):
        stored = str(stored)
    if isinstance(stored, bool) or not isinstance(stored, str | int) or not str(stored).strip():
        raise line.error(f"a label in {name}", str(stored))
    return re.sub(r"^(-?\d+)\.0$", r"\1", str(stored).strip())
