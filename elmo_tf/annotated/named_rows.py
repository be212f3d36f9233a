"""Rows of named values, as in Hugging Face's data sets: JSON lines and Parquet."""

import itertools
import os
import pathlib
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError
from elmo_tf.files import json_file

_MAX_SHOWN = 20  # names of values in a message
_Row = TypeVar("_Row", bound=msgspec.Struct)


def has_named_values(path: str | os.PathLike) -> bool:
    """Whether rows carry their names: Parquet or JSON lines. Raises `InputError` if a file is a JSON array."""
    if is_parquet(path):
        return True
    first = " ".join(line.text for line in itertools.islice(numbered_lines.nonblank_lines(path), 2)).lstrip()
    if re.match(r"\[\s*\{", first):
        raise InputError(str(path), "a JSON array; write an object per line, for example by: jq -c '.[]' OLD > NEW")
    return first.startswith("{")


def read(path: str | os.PathLike) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yields each row of Parquet or JSON lines with its values by name."""
    if is_parquet(path):
        yield from _of_parquet(path)
        return
    for line in numbered_lines.nonblank_lines(path):
        yield line, json_file.parse(line.text, dict, line.location)


def parse(line: Line, kind: type[_Row]) -> _Row:
    """Returns the JSON object of a line as a `msgspec.Struct`.

    Raises:
        InputError: naming all missing keys and those present.
    """
    values = json_file.parse(line.text, dict[str, Any], line.location)
    names = [field.encode_name for field in msgspec.structs.fields(kind) if field.required]
    if missing := [name for name in names if name not in values]:
        raise lacking(line, values, missing)
    return json_file.convert(values, kind, line.location)


def lacking(line: Line, keys: Collection[str], missing: Sequence[str], hint: str = "") -> InputError:
    """Returns the error for a row that has the values `keys`, but lacks those in `missing`."""
    shown = ", ".join(map(repr, itertools.islice(keys, _MAX_SHOWN))) + ", ..." * (len(keys) > _MAX_SHOWN)
    return InputError(
        line.location, f"it has {shown or 'no values'}, but no {', and no '.join(missing)}{hint and f'; {hint}'}"
    )


def named_label(line: Line, number: str | int, labels: Sequence[str]) -> str:
    """Returns the name of a label stored as a number; the number itself if there are no names."""
    if not labels:
        return str(number)
    if not 0 <= int(number) < len(labels):
        raise InputError(line.location, f"label {number} has no name: --labels gives {len(labels)}, counted from 0")
    return labels[int(number)]


def is_parquet(path: str | os.PathLike) -> bool:
    """Whether a file is Parquet, by its ending."""
    return pathlib.Path(path).suffix == ".parquet"


def _of_parquet(path: str | os.PathLike) -> Iterator[tuple[Line, dict[str, Any]]]:
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
