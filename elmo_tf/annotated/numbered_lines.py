"""What the readers of this room share: the lines of a text file, plain or compressed, and errors that name one."""

import bz2
import gzip
import itertools
import lzma
import os
import pathlib
from collections.abc import Iterator

from elmo_tf.errors import InputError

_OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def blocks(path: str | os.PathLike, argument: str) -> Iterator[list[tuple[int, str]]]:
    """Yields the numbered lines of each sentence that has other lines than remarks."""
    for empty, lines in itertools.groupby(numbered_lines(path, argument), lambda line: not line[1].strip()):
        block = list(lines)
        if not empty:
            yield block


def numbered_lines(path: str | os.PathLike, argument: str) -> Iterator[tuple[int, str]]:
    opener = _OPENERS.get(pathlib.Path(path).suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{argument}: expected UTF-8, found {error.reason} in {path}") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{argument}: expected a readable file, found {error}: {path}") from None


def one_token(form: str) -> str:
    """Returns a form without the white space that some treebanks have inside one: text is split there elsewhere."""
    return "".join(form.split())


def require_some(found: list | dict, argument: str, path: str | os.PathLike, what: str) -> list | dict:
    if not found:
        raise InputError(f"{argument}: expected at least one {what}, found none in {path}")
    return found


def wrong_line(argument: str, path: str | os.PathLike, number: int, expected: str, found: str) -> InputError:
    return InputError(f"{argument}: expected {expected}, found {found!r} in line {number} of {path}")
