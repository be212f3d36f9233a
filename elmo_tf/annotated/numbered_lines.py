"""The lines of an annotated file, plain or compressed, and errors that name a line. Every reader here uses them."""

import bz2
import gzip
import itertools
import lzma
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from elmo_tf.errors import InputError, reason

_OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_MOST_SHOWN = 60  # characters of a wrong line in a message
_Found = TypeVar("_Found", list, dict)


class Line(NamedTuple):
    """A line of a file, without its line break."""

    path: str
    number: int  # from 1
    text: str

    @property
    def place(self) -> str:
        """File and number, as errors name the line."""
        return f"{self.path}, line {self.number}"

    def wrong(self, expected: str, found: str | None = None) -> InputError:
        """Returns the error about this line, which shows `found`, or else the line itself, shortened if it is long."""
        found = self.text if found is None else found
        return InputError(
            self.place, expected, repr(found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}...")
        )


def lines(path: str | os.PathLike) -> Iterator[Line]:
    """Yields the lines of a file.

    Raises:
        InputError: if the file cannot be read or is not UTF-8.
    """
    name, suffix = str(path), pathlib.Path(path).suffix
    if suffix in (".zst", ".zip"):
        raise InputError(name, f"a file that is plain or ends in {', '.join(_OPENERS)}", suffix)
    opener = _OPENERS.get(suffix, open)
    number = 0
    try:
        with opener(path, "rb") as file:
            for number, line in enumerate(file, 1):
                # Some editors begin a file with a byte order mark.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield Line(name, number, text.rstrip("\r\n"))
    except UnicodeDecodeError as error:
        raise InputError(f"{name}, line {number}", "UTF-8", error.reason) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(name, "a readable file", reason(error)) from None


def require_file(path: str | os.PathLike) -> None:
    """Raises `InputError` for a pipe: what is read to recognize a format would be missing when it is read again."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(str(path), "a file, because it is read twice", "a pipe or a folder")


def filled_lines(path: str | os.PathLike) -> Iterator[Line]:
    """Yields the lines that are not blank; raises as `lines` does."""
    return (line for line in lines(path) if line.text.strip())


def blocks(path: str | os.PathLike) -> Iterator[list[Line]]:
    """Yields the lines between blank lines, a block at a time; raises as `lines` does."""
    for is_filled, block in itertools.groupby(lines(path), lambda line: bool(line.text.strip())):
        if is_filled:
            yield list(block)


def one_token(form: str) -> str:
    """Returns a word without the white space that some treebanks have inside words."""
    return "".join(form.split())


def require_some(found: _Found, path: str | os.PathLike, what: str) -> _Found:
    """Returns `found`, the contents of `path`; raises `InputError` if it is empty."""
    if not found:
        raise InputError(str(path), f"at least one {what}", "none")
    return found
