"""Files for the readers' tests."""

import gzip
import lzma
import pathlib
import re

import pytest

from elmo_tf.errors import InputError


def write(folder: pathlib.Path, text: str, name: str = "file") -> pathlib.Path:
    """Writes a text file, compressed as its name says; returns its path."""
    path = folder / name
    opener = {"xz": lzma.open, "gz": gzip.open}.get(name.rpartition(".")[2], open)
    with opener(path, "wb") as file:
        file.write(text.encode())
    return path


def refused(path: pathlib.Path, expected: str, line: int | None = None):
    """Expects an `InputError` about the file or one of its lines; `expected` is a regular expression."""
    place = re.escape(str(path)) + ("" if line is None else f", line {line}")
    return pytest.raises(InputError, match=f"^{place}: expected {expected}")
