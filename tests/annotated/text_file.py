"""Files for the readers' tests."""

import gzip
import lzma
import pathlib
import re
from collections.abc import Callable

import pytest

from elmo_tf.errors import InputError


def write(folder: pathlib.Path, text: str, name: str = "file") -> pathlib.Path:
    """Writes a text file, compressed as its name says; returns its path."""
    path = folder / name
    opener = {"xz": lzma.open, "gz": gzip.open}.get(name.rpartition(".")[2], open)
    with opener(path, "wb") as file:
        file.write(text.encode())
    return path


def assert_refused(read: Callable, path: pathlib.Path, expected: str, line: int | None = None) -> None:
    """Reads a file that is wrong; the error names it and, if given, the line; `expected` is a regular expression."""
    place = re.escape(str(path)) + ("" if line is None else f", line {line}")
    with pytest.raises(InputError, match=f"^{place}: (expected )?{expected}"):
        read(path)
