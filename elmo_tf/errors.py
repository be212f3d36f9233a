"""`InputError`, the exception for wrong input; any other exception but `OSError` is a defect."""

import contextlib
import difflib
import json
import logging
import os
import re
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

_OUT_OF_MEMORY = ("std::bad_alloc", "OOM when allocating", "CUDA_ERROR_OUT_OF_MEMORY", "ailed to allocate memory")
_MAX_SHOWN = 60  # characters of a wrong value in a message
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


class InputError(ValueError):
    """A user's argument, file or setting cannot be used.

    The message is one line that starts with what is wrong and says what to do. The command line prints it, with its
    flag instead of a parameter, and exits with status 1.

    Examples:
        >>> print(elmo_tf.InputError("nope.txt", "no such file"))
        nope.txt: no such file
        >>> print(elmo_tf.InputError("min_count", "at least 1", 0))
        min_count: expected at least 1, found 0

    Args:
        subject: the path of the file or folder, the name of the model, the configuration key (`train.seed`), or the
            parameter through which any other value entered; several names are joined by `", "`. Alone, it is the whole
            message.
        problem: what is wrong, in a plain sentence; with `found`, what was expected.
        found: the actual value, where it says more than the problem alone.
    """

    def __init__(self, subject: str, problem: str = "", *found: object):
        # Keras re-creates a layer's error from its message alone, with added text.
        message = subject
        if problem:
            message += f": expected {problem}, found {found[0]}" if found else f": {problem}"
        # A worker cannot report names that are not UTF-8.
        super().__init__(printable(message))
        self.subject = printable(subject)
        self.problem = problem
        self.found = found[0] if found else ""
        self._arguments: tuple = (self.subject, problem, *found)

    def __reduce__(self) -> tuple:
        return type(self), self._arguments

    def about(self, subject: str) -> "InputError":
        """Returns the same error about another subject, such as the key's whole path."""
        _, problem, *found = self._arguments
        return type(self)(subject, problem, *found)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean ...?` with the known name most similar to `name`, or "" if none is similar.

    Initials are similar, too: `train.lr` to `train.learning_rate`.
    """
    known = list(known)
    similar = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    similar = similar or [key for key in known if name.rpartition(".")[2] == _initials(key)]
    return f"; did you mean {similar[0]}?" if similar else ""


def _initials(key: str) -> str | None:
    """Returns the first letters of the words after a key's last dot; None if it is a single word."""
    words = key.rpartition(".")[2].split("_")
    return "".join(word[:1] for word in words) if len(words) > 1 else None


# What a terminal may interpret or reorder: control characters, line separators, direction marks.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str, kept: str = "") -> str:
    """Returns the text with escapes for characters that UTF-8 or a terminal cannot show, except those in `kept`.

    File names, and text from files and servers, may contain any.
    """
    text = text.encode(errors="backslashreplace").decode()
    return _CONTROL.sub(lambda match: match[0] if match[0] in kept else repr(match[0])[1:-1], text)


def _escape(record: logging.LogRecord) -> bool:
    """A filter that makes a log message printable; only the format, and text logged alone, may have line breaks."""
    if record.msg != "%s" and isinstance(record.args, tuple):
        record.args = tuple(printable(str(v)) if isinstance(v, _QUOTED) else v for v in record.args)
    record.msg, record.args = printable(record.getMessage(), kept="\n"), ()
    return True


_QUOTED = (str, os.PathLike, BaseException)
logging.getLogger("elmo_tf").addFilter(_escape)


def reason(error: BaseException) -> str:
    """Returns an error's message on one line: an `OSError`'s without number and file; of Beam's, the innermost."""
    while details := getattr(error, "exception_details", None):
        error = next(iter(details.values())) if isinstance(details, dict) else details
    words = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error) or type(error).__name__
    return " ".join(words.split())


def unreadable(path: object, error: Exception) -> InputError:
    """Returns the error for a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(str(path), "no such file")
    return InputError(str(path), f"cannot be read ({reason(error)})")


def not_utf8(location: str, problem: str) -> InputError:
    """Returns the error for text in another encoding, with the remedy."""
    remedy = "convert it, for example from Latin-1 by: iconv -f latin1 -t utf-8 OLD > NEW"
    return InputError(location, f"not UTF-8 ({problem}); {remedy}")


@contextlib.contextmanager
def explain_out_of_memory(parameters: str = "memory", remedy: str = "") -> Iterator[None]:
    """Turns TensorFlow's or Python's error about too little memory into an `InputError`.

    Args:
        parameters: what the user can change to need less memory.
        remedy: how, such as `set smaller values`.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or not is_about_memory(error):
            raise
        problem = f"too little memory{remedy and f'; {remedy}'} ({_allocation_line(error)})"
        raise InputError(parameters, problem) from error


@contextlib.contextmanager
def damage_reported(expected: str, source: str | os.PathLike) -> Iterator[None]:
    """Turns exceptions in the block, which reads the file `source`, into `InputError`, except those about memory.

    Libraries raise exceptions of many types for damaged files.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or is_about_memory(error):
            raise
        raise InputError(str(source), f"not {expected} ({reason(error)})") from None


def is_about_memory(error: BaseException) -> bool:
    """Whether memory ran out. TensorFlow, not imported here, raises the same exception when a disk is full."""
    if isinstance(error, MemoryError):
        return True
    if any(words in str(error) for words in _DISK_FULL):
        return False
    return type(error).__name__ == "ResourceExhaustedError" or any(words in str(error) for words in _OUT_OF_MEMORY)


def _allocation_line(error: BaseException) -> str:
    """Returns the line about the failed allocation, without TensorFlow's names of nodes and devices."""
    lines = re.sub(r"\{\{.*?\}\}|\[Op:.*|/job:\S*/device:|by allocator \S+", "", str(error)).strip().splitlines()
    about_memory = [line for line in lines if any(words in line for words in _OUT_OF_MEMORY)]
    return " ".join((about_memory or lines or [type(error).__name__])[0].split())


def convert(value: Any, kind: Any, source: str) -> Any:
    """Returns a value of JSON as a `kind`: `msgspec.convert`, but raises an `InputError` about `source`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _misfit(error, value, kind, source) from None
    except UnicodeEncodeError:  # JSON can escape it
        raise InputError(source, "half a surrogate pair in a string, which is no character") from None


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
    return one_line(json.dumps(value, default=repr))


def one_line(text: str) -> str:
    """Returns the beginning of a text, without line breaks."""
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
