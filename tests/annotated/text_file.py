"""Files for the readers' tests."""

import gzip
import lzma
import pathlib
import re
from collections.abc import Callable

import pytest
from backports import zstd

from elmo_tf.errors import InputError


def write(folder: pathlib.Path, text: str, name: str = "file") -> pathlib.Path:
    """Writes a text file, compressed as its name says; returns its path."""
    path = folder / name
    opener = {"xz": lzma.open, "gz": gzip.open, "zst": zstd.open}.get(name.rpartition(".")[2], open)
    with opener(path, "wb") as file:
        file.write(text.encode())
    return path


def assert_refused(read: Callable, path: pathlib.Path, expected: str, line: int | None = None) -> None:
    """Asserts that the error of reading a file names it, the line if given, and what the pattern `expected` says."""
    location = re.escape(str(path)) + ("" if line is None else f", line {line}")
    with pytest.raises(InputError, match=f"^{location}: (expected )?{expected}"):
        read(path)
