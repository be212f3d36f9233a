"""JSON files, whoever wrote them: the types and ranges of their values are checked when they are read."""

import json
import os
import pathlib
import re
from typing import Annotated, Any, TypeVar

import msgspec

from elmo_tf.errors import InputError

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_MOST_SHOWN = 60  # characters of a wrong value in a message
_Value = TypeVar("_Value")


def read(path: str | os.PathLike, kind: type[_Value]) -> _Value:
    """Returns the contents of a JSON file as a `kind`: a `msgspec.Struct`, `dict[str, Count]`, ...

    Raises:
        InputError: naming the file, if it cannot be read, is not JSON or does not fit `kind`.
    """
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InputError(str(path), "a JSON file", error.strerror) from None
    return parse(content, kind, str(path))


def parse(content: str | bytes, kind: type[_Value], source: str) -> _Value:
    """Returns the JSON in `content` as a `kind`, as `read` does; NaN is allowed, as in Python's `json`.

    Raises:
        InputError: naming the `source`, if `content` is not JSON or does not fit `kind`.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        raise InputError(source, "JSON", "brackets nested too deeply") from None
    except ValueError as error:  # not UTF-8, not JSON, or a number of thousands of digits
        raise InputError(source, "JSON", _one_line(str(error))) from None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(source, *_misfit(str(error), value)) from None


def _misfit(message: str, value: Any) -> tuple[str, str]:
    """Returns what was expected and found, from msgspec's "Expected `int` >= 0 - at `$.shards[0].bytes`"."""
    what, _, place = message.replace("`", "").partition(" - at $")
    place = place.removeprefix(".")
    if missing := re.fullmatch("Object missing required field (.*)", what):
        return f"the key {place}.{missing[1]}" if place else f"the key {missing[1]}", "none"
    expected = (
        what.removeprefix("Expected ").partition(", got ")[0] if what.startswith("Expected ") else "a valid value"
    )
    expected = f"{place} to be {expected}" if place else expected
    if "[...]" in place:
        return expected, "another value"  # msgspec does not say at which key
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", place):
        value = value[int(index)] if index else value[key]
    return expected, _shown(value)


def _shown(value: Any) -> str:
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return f"a list of {len(value)}"
    return _one_line(json.dumps(value))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
