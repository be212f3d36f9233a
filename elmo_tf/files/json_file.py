"""JSON files, whoever wrote them: the types and ranges of their values are checked when they are read."""

import json
import os
import pathlib
import re
import typing
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from elmo_tf.errors import InputError, unreadable

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_MAX_SHOWN = 60  # characters of a wrong value in a message
_Value = TypeVar("_Value")


def read(path: str | os.PathLike, kind: type[_Value]) -> _Value:
    """Returns the contents of a JSON file as a `kind`: a `msgspec.Struct`, `dict[str, Count]`, ...

    Raises `InputError`, naming the file, if it cannot be read, is not JSON or does not fit `kind`.
    """
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    return parse(content, kind, str(path))


def parse(content: str | bytes, kind: type[_Value], source: str) -> _Value:
    """Returns the JSON in `content` as a `kind`, as `read` does; NaN is allowed, as in Python's `json`."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise InputError(source, "not JSON: brackets are nested too deeply") from None
    except ValueError as error:  # not UTF-8, not JSON, or a number of thousands of digits
        raise InputError(source, f"not JSON: {_one_line(str(error))}") from None
    return convert(value, kind, source)


def convert(value: Any, kind: Any, source: str) -> Any:
    """Returns a value of JSON as a `kind`: `msgspec.convert`, but raises an `InputError` about `source`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _misfit(error, value, kind, source) from None


def _misfit(error: msgspec.ValidationError, value: Any, kind: Any, source: str) -> InputError:
    """Returns the error for msgspec's "Expected `int` >= 0, got `str` - at `$.shards[0].bytes`"."""
    what, _, path = str(error).replace("`", "").partition(" - at $")
    path = path.removeprefix(".")
    if missing := re.fullmatch("Object missing required field (.*)", what):
        return InputError(source, f"no key {path}.{missing[1]}" if path else f"no key {missing[1]}")
    if what.startswith("Expected "):
        expected = what.removeprefix("Expected ").partition(", got ")[0]
    elif not path and typing.get_origin(kind) is Literal:
        expected = f"one of {', '.join(typing.get_args(kind))}"
    else:
        expected = "a valid value"
    expected = f"{path} to be {expected}" if path else expected
    if "[...]" in path:
        return InputError(source, expected, "another value")  # msgspec does not say at which key
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        value = value[int(index)] if index else value[key]
    return InputError(source, expected, _shown(value))


def _shown(value: Any) -> str:
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return f"a list of {len(value)}"
    return _one_line(json.dumps(value, default=repr))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
