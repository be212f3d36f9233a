"""The types that a value read from a JSON file must have before it is used."""

from typing import Any

# `int`: a whole number, at least 0; `str`; `dict`: any object. `[kind]`: a list; `{str: kind}`: an object with any
# keys; `{"key": kind, ...}`: an object with at least these keys.
Kind = Any


def fits(value: Any, kind: Kind) -> bool:
    """Whether `value` has the types of `kind`."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(fits(item, kind[0]) for item in value)
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return False
        if str in kind:
            return all(fits(item, kind[str]) for item in value.values())
        return all(name in value and fits(value[name], inner) for name, inner in kind.items())
    if kind is int:
        # To Python, True is an int.
        return type(value) is int and value >= 0
    return isinstance(value, kind)
