"""Rows with named values: JSON lines, tables with a header, and Parquet, as Hugging Face's and GLUE's data sets are."""

import itertools
import os
import pathlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError
from elmo_tf.files import json_file

Record = tuple[Line, dict[str, Any]]


def has_named_values(path: str | os.PathLike) -> bool:
    """Whether rows carry their field names: Parquet or JSON lines."""
    return is_parquet(path) or numbered_lines.first_line(path).lstrip().startswith("{")


def has_header(path: str | os.PathLike, names: Collection[Collection[str]]) -> bool:
    """Whether a file's first line has tabs and, of each of `names`, any of its alternatives."""
    header = _cells(numbered_lines.first_line(path))
    return len(header) > 1 and all(set(header) & set(alternatives) for alternatives in names)


def read(path: str | os.PathLike) -> Iterator[Record]:
    """Yields each row of a file with its values by name: Parquet, JSON lines, or columns that the first line names."""
    if is_parquet(path):
        yield from _of_parquet(path)
        return
    lines = numbered_lines.nonblank_lines(path)
    first = next(lines, None)
    if first is None:
        return
    if first.text.lstrip().startswith("{"):
        for line in itertools.chain([first], lines):
            yield line, json_file.parse(line.text, dict, line.location)
        return
    header = _cells(first.text)
    for line in lines:
        yield line, dict(zip(header, line.text.split("\t"), strict=False))


def value(row: dict[str, Any], names: Collection[str]) -> Any:
    """Returns the first value that a row has under any of these names; None without a value."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def label(
    line: Line, row: dict[str, Any], names: Sequence[str], labels: Sequence[str], unknown: Collection[str] = ()
) -> str | None:
    """Returns a row's label, which may be an index into `labels`; None if it is missing or among `unknown`."""
    stored = value(row, names)
    if isinstance(stored, bool) or not isinstance(stored, (str, int, float, type(None))):
        raise line.error(f"a label in {names[0]}", str(stored))
    if isinstance(stored, float):
        stored = int(stored) if stored.is_integer() else str(stored)
    text = "" if stored is None else str(stored).strip()
    if not text or text in unknown:
        return None
    return named_label(line, text, labels) if text.isdecimal() else text


def named_label(line: Line, number: str | int, labels: Sequence[str]) -> str:
    """Returns the name of a label that a file has as a number; the number itself if there are no names."""
    if not labels:
        return str(number)
    if not 0 <= int(number) < len(labels):
        raise InputError(line.location, f"label {number} has no name: --labels gives {len(labels)}, counted from 0")
    return labels[int(number)]


def _cells(text: str) -> list[str]:
    return [name.strip() for name in text.split("\t")]


def is_parquet(path: str | os.PathLike) -> bool:
    """Whether a file is Parquet, by its ending."""
    return pathlib.Path(path).suffix == ".parquet"


def _of_parquet(path: str | os.PathLike) -> Iterator[Record]:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - Beam brings it
    except ImportError:
        raise InputError(str(path), "reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        number = 0
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield Line(str(path), number, json_file.dumps(row, default=str)), row
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(str(path), f"it cannot be read as Parquet: {error}") from None
