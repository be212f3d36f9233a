"""The lines of an annotated file, plain or compressed, and errors that name a line. Every reader here uses them."""

import bz2
import gzip
import itertools
import lzma
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import TypeVar

from elmo_tf.errors import InputError, reason

_OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_MOST_SHOWN = 60  # characters of a wrong line in a message
_Found = TypeVar("_Found", list, dict)


def blocks(path: str | os.PathLike) -> Iterator[list[tuple[int, str]]]:
    """Yields the numbered lines between empty lines, a block at a time; raises as `numbered_lines` does."""
    for is_empty, lines in itertools.groupby(numbered_lines(path), lambda line: not line[1].strip()):
        block = list(lines)
        if not is_empty:
            yield block


def numbered_lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """Yields each line with its number, from 1, without its end.

    Raises:
        InputError: if the file cannot be read or is not UTF-8.
    """
    opener = _OPENERS.get(pathlib.Path(path).suffix, open)
    try:
        # Some editors begin a file with a byte order mark.
        with opener(path, "rt", encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError("path", "UTF-8", f"{error.reason} in {path}") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError("path", "a readable file", f"{reason(error)}: {path}") from None


def one_token(form: str) -> str:
    """Returns a form without white space, which some treebanks have inside words and all other text is split at."""
    return "".join(form.split())


def require_some(found: _Found, path: str | os.PathLike, what: str) -> _Found:
    """Returns `found`, the contents of `path`; raises `InputError` if it is empty."""
    if not found:
        raise InputError("path", f"at least one {what}", f"none in {path}")
    return found


def wrong_line(path: str | os.PathLike, number: int, expected: str, found: str) -> InputError:
    """Returns the error about line `number` of `path`; of a long line it shows the beginning."""
    found = found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}..."
    return InputError("path", expected, f"{found!r} in line {number} of {path}")
