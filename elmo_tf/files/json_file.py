"""JSON files, whoever wrote them: the types and ranges of their values are checked when they are read.

A schema says what a file has to hold, and `read` raises one clear error when it holds anything else:

    INFO = Object({"sentences": Whole(1), "shards": ListOf(Object({"name": Text(), "bytes": Whole()}))})
    info = read(folder / "info.json", INFO)
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from elmo_tf.errors import InputError

_MOST_SHOWN = 60  # characters of a wrong value in a message


class Schema(Protocol):
    """What a value has to be."""

    def check(self, value: Any, place: str) -> None:
        """Raises `_Misfit` unless `value`, found at `place` in the file, fits."""


@dataclasses.dataclass(frozen=True)
class Whole:
    """A whole number."""

    least: int = 0
    most: int = 2**63 - 1

    def check(self, value: Any, place: str) -> None:
        # To Python, True is an int.
        if type(value) is not int or not self.least <= value <= self.most:
            limit = f"of at least {self.least}" if self.most == Whole.most else f"from {self.least} to {self.most}"
            raise _wrong(place, f"a whole number {limit}", value)


@dataclasses.dataclass(frozen=True)
class Real:
    """A number, whole or not; by default a finite one. NaN fits only if `nan` is set."""

    least: float = -sys.float_info.max
    most: float = sys.float_info.max
    nan: bool = False

    def check(self, value: Any, place: str) -> None:
        fits = type(value) in (int, float) and (self.least <= value <= self.most or (self.nan and math.isnan(value)))
        if not fits:
            at_least = f" of at least {self.least:g}" if self.least > -sys.float_info.max else ""
            raise _wrong(place, f"a {'finite ' if math.isfinite(self.most) else ''}number{at_least}", value)


@dataclasses.dataclass(frozen=True)
class Text:
    """A string, all of which the regular expression `pattern` matches."""

    pattern: str = r"[\s\S]*"

    def check(self, value: Any, place: str) -> None:
        if type(value) is not str or not re.fullmatch(self.pattern, value):
            like = "" if self.pattern == Text.pattern else f" like {self.pattern}"
            raise _wrong(place, f"a string{like}", value)


@dataclasses.dataclass(frozen=True)
class OneOf:
    """One of a few strings."""

    values: tuple[str, ...]

    def check(self, value: Any, place: str) -> None:
        if value not in self.values:
            raise _wrong(place, " or ".join(self.values), value)


@dataclasses.dataclass(frozen=True)
class Nullable:
    """Null, or what `schema` says."""

    schema: Schema

    def check(self, value: Any, place: str) -> None:
        if value is not None:
            self.schema.check(value, place)


@dataclasses.dataclass(frozen=True)
class ListOf:
    """A list of any length, all items alike."""

    item: Schema

    def check(self, value: Any, place: str) -> None:
        if type(value) is not list:
            raise _wrong(place, "a list", value)
        for number, item in enumerate(value):
            self.item.check(item, f"{place}[{number}]")


@dataclasses.dataclass(frozen=True)
class Row:
    """A list with one item for each schema."""

    items: tuple[Schema, ...]

    def check(self, value: Any, place: str) -> None:
        if type(value) is not list or len(value) != len(self.items):
            raise _wrong(place, f"a list of {len(self.items)}", value)
        for number, (schema, item) in enumerate(zip(self.items, value, strict=True)):
            schema.check(item, f"{place}[{number}]")


@dataclasses.dataclass(frozen=True)
class Object:
    """An object with these keys, those of `optional` if they are there, and any others."""

    required: Mapping[str, Schema]
    optional: Mapping[str, Schema] = dataclasses.field(default_factory=dict)

    def check(self, value: Any, place: str) -> None:
        if type(value) is not dict:
            raise _wrong(place, "an object", value)
        for name, schema in {**self.required, **self.optional}.items():
            inner = f"{place}.{name}" if place else name
            if name in value:
                schema.check(value[name], inner)
            elif name in self.required:
                raise _Misfit(f"the key {inner}", "none")


@dataclasses.dataclass(frozen=True)
class MapOf:
    """An object with any keys, all values alike."""

    value: Schema

    def check(self, value: Any, place: str) -> None:
        if type(value) is not dict:
            raise _wrong(place, "an object", value)
        for name, one in value.items():
            self.value.check(one, f"{place}.{name}" if place else name)


def read(path: str | os.PathLike, schema: Schema, parameter: str | None = None) -> Any:
    """Returns the contents of a JSON file.

    Args:
        path: the file.
        schema: what its value has to be.
        parameter: the caller's parameter that leads to the file. An error then names it and ends with the path.

    Raises:
        InputError: naming the file, if it cannot be read, is not JSON or does not fit the schema.
    """
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise _error(str(path), parameter, "a JSON file", error.strerror) from None
    return parse(content, schema, str(path), parameter)


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Value = TypeVar("_Value")


def read_as(path: str | os.PathLike, kind: type[_Value]) -> _Value:
    """Returns the contents of a JSON file as a `kind`.

    Args:
        path: the file.
        kind: what `msgspec.convert` takes: a `msgspec.Struct`, `dict[str, Count]`, ...

    Raises:
        InputError: naming the file, if it cannot be read, is not JSON or does not fit `kind`.
    """
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InputError(str(path), "a JSON file", error.strerror) from None
    return parse_as(content, kind, str(path))


def parse_as(content: str | bytes, kind: type[_Value], source: str) -> _Value:
    """Returns the value that `content` holds as JSON, which may use NaN as Python's does, as a `kind`.

    Args:
        content: the text; bytes are UTF-8.
        kind: as for `read_as`.
        source: where the text comes from, for errors.

    Raises:
        InputError: naming the source, if `content` is not JSON or does not fit `kind`.
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
    """Returns what was expected and what was found, from msgspec's "Expected `int` >= 0 - at `$.shards[0].bytes`"."""
    what, _, place = message.replace("`", "").partition(" - at $")
    place = place.removeprefix(".")
    if "[...]" not in place:
        for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", place):
            value = value[int(index)] if index else value[key]
    if missing := re.fullmatch("Object missing required field (.*)", what):
        return f"the key {place}.{missing[1]}" if place else f"the key {missing[1]}", "none"
    expected = what.removeprefix("Expected ").partition(", got ")[0]
    found = "another value" if "[...]" in place else _shown(value)  # msgspec does not say which key
    return f"{place} to be {expected}" if place else expected, found


def parse(content: str | bytes, schema: Schema, source: str, parameter: str | None = None) -> Any:
    """Returns the value that `content` holds as JSON.

    Args:
        content: the text; bytes are UTF-8.
        schema: what the value has to be.
        source: where the text comes from, for errors.
        parameter: as for `read`.

    Raises:
        InputError: naming the source, if it is not JSON or does not fit the schema.
    """
    try:
        value = _loaded(content)
        schema.check(value, "")
    except _Misfit as misfit:
        raise _error(source, parameter, misfit.expected, misfit.found) from None
    return value


@contextlib.contextmanager
def contents_of(path: str | os.PathLike, parameter: str | None = None) -> Iterator[None]:
    """Turns an `InputError` about a key into one about the file that holds it: `path: expected KEY to be ...`."""
    try:
        yield
    except InputError as error:
        raise _error(str(path), parameter, f"{error.parameter} to be {error.expected}", error.found) from None


class _Misfit(Exception):
    """A value does not fit its schema."""

    def __init__(self, expected: str, found: str):
        super().__init__(expected, found)
        self.expected = expected
        self.found = found


def _loaded(content: str | bytes) -> Any:
    try:
        return json.loads(content)
    except RecursionError:
        raise _Misfit("JSON", "brackets nested too deeply") from None
    except ValueError as error:  # not UTF-8, not JSON, or a number of thousands of digits
        raise _Misfit("JSON", _one_line(str(error))) from None


def _error(source: str, parameter: str | None, expected: str, found: object) -> InputError:
    if parameter is None:
        return InputError(source, expected, found)
    return InputError(parameter, expected, f"{found}: {source}")


def _wrong(place: str, expected: str, value: Any) -> _Misfit:
    return _Misfit(f"{place} to be {expected}" if place else expected, _shown(value))


def _shown(value: Any) -> str:
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return f"a list of {len(value)}"
    return _one_line(json.dumps(value))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
