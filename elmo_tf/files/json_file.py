"""JSON files of this package and of others; values are checked when they are read."""

import json
import math
import os
from typing import Annotated, Any, TypeVar

import msgspec

from elmo_tf.errors import InputError, convert, one_line
from elmo_tf.files import intact

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_Value = TypeVar("_Value")


def read(path: str | os.PathLike, kind: type[_Value]) -> _Value:
    """Returns the contents of a JSON file as a `kind`: a `msgspec.Struct`, `dict[str, Count]`, ...

    Raises `InputError`, naming the file, if it cannot be read, is not JSON or does not fit `kind`.
    """
    return parse(intact.read(path), kind, str(path))


def parse(content: str | bytes, kind: type[_Value], source: str) -> _Value:
    """Returns the JSON in `content` as a `kind`, as `read` does; NaN is allowed, as in Python's `json`."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise InputError(source, "not JSON: brackets are nested too deeply") from None
    except ValueError as error:  # not UTF-8, not JSON, or a number of thousands of digits
        raise InputError(source, f"not JSON: {one_line(str(error))}") from None
    return convert(value, kind, source)


def dumps(value: Any, **settings: Any) -> str:
    """Returns `json.dumps(value, **settings)` with null for numbers that JSON lacks: infinity and NaN."""
    try:
        return json.dumps(value, allow_nan=False, **settings)
    except ValueError:
        return json.dumps(_without_nan(value), allow_nan=False, **settings)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
