"""A corpus as files of sentences, one a line: finding them, sharing them out over shards, reading blocks of lines.

Plain and gzip files (`.gz`) are read; everything is UTF-8. A line ends at `\\n` and nowhere else, so that a carriage
return is white space like any other.
"""

import codecs
import glob
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from elmo_tf.errors import InputError

BLOCK_BYTES = 1 << 17  # lines are read this much at a time: enough to convert in bulk, little enough to stay in cache
GZIP_RATIO = 3  # bytes of text in a byte of gzip, roughly
_GZIP_PASSES = 8  # tasks that share a gzip file, each of which has to decompress all of it
_OPEN_SHARDS = 64  # shards that one task writes at the same time, at most


class CorpusError(InputError):
    """A file of the corpus cannot be used.

    Args:
        path: the file.
        line: number of its first bad line; 0 when the file as a whole is meant.
        message: what `InputError` says.
    """

    def __init__(self, path: str, line: int, message: str):
        super().__init__(message)
        self.path, self.line = path, line


class TextFile(NamedTuple):
    """One file of the corpus."""

    path: str
    size: int  # bytes on disk

    @property
    def is_gzip(self) -> bool:
        """Whether the file is compressed, going by its name."""
        return self.path.endswith(".gz")

    @property
    def text_size(self) -> int:
        """Bytes of text in it; a guess for a gzip file."""
        return self.size * GZIP_RATIO if self.is_gzip else self.size


class Slice(NamedTuple):
    """Part of a file: the lines that begin at bytes start <= n < end and, of their blocks, every `parts`-th one."""

    path: str
    start: int = 0
    end: int | None = None  # None: to the end of the file, whatever its size
    part: int = 0
    parts: int = 1


class Task(NamedTuple):
    """What one worker does at a time: the blocks of `slices`, in order, are dealt out to `shards` in turn."""

    shards: tuple[int, ...]
    slices: tuple[Slice, ...]


class Block(NamedTuple):
    """Whole lines of UTF-8 text."""

    data: bytes
    byte_order_marks: int  # 1 where one was taken off the beginning of a file, else 0

    def lines(self) -> list[bytes]:
        """Returns the lines without their line feeds; one that the end of the file cuts short is a line too."""
        return self.data.removesuffix(b"\n").split(b"\n") if self.data else []


def match(patterns: Iterable[str], argument: str = "--input") -> list[TextFile]:
    """Returns the files that `patterns` name, each once, sorted by path.

    A pattern is a file's own name or a glob (`*`, `?`, `[..]`, and `**` for folders of any depth).

    Raises:
        InputError: naming `argument`, if a pattern matches no file, or a file cannot be read.
    """
    found = set()
    for pattern in patterns:
        paths = [pattern] if os.path.exists(pattern) else glob.glob(pattern, recursive=True)
        files = [path for path in paths if os.path.isfile(path)]
        if not files:
            what = f"a folder (did you mean {os.path.join(pattern, '*')}?)" if paths == [pattern] else "no such file"
            raise InputError(f"{argument}: expected a file or a glob that matches files, found {what}: {pattern}")
        found.update(os.path.normpath(path) for path in files)
    unreadable = [path for path in sorted(found) if not os.access(path, os.R_OK)]
    if unreadable:
        raise InputError(f"{argument}: expected a file that may be read, found one that may not: {unreadable[0]}")
    return [TextFile(path, os.path.getsize(path)) for path in sorted(found)]


def plan(files: list[TextFile], num_shards: int) -> list[Task]:
    """Returns tasks that together write `num_shards` shards and read every line of `files` exactly once.

    With as many files as shards or more, a shard takes every `num_shards`-th file. With fewer, files are split: a plain
    one at bytes, a gzip one by dealing out its blocks of lines. The plan depends on its arguments alone.
    """
    if len(files) >= num_shards:
        shared = [tuple(Slice(file.path) for file in files[shard::num_shards]) for shard in range(num_shards)]
        return [Task((shard,), slices) for shard, slices in enumerate(shared)]
    tasks = []
    for number, file in enumerate(files):
        shards = tuple(range(number, num_shards, len(files)))
        tasks.extend(_split_gzip(file, shards) if file.is_gzip else _split_plain(file, shards))
    return sorted(tasks)


def read_blocks(part: Slice) -> Iterator[Block]:
    """Yields the lines of a slice, `BLOCK_BYTES` or little more at a time.

    Raises:
        CorpusError: if the file cannot be read, is not the gzip file its name says, or a line is not UTF-8.
    """
    for number, (position, data) in enumerate(_read(part)):
        if number % part.parts != part.part:
            continue
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = _line_number(part.path, position + error.start)
            found = f"byte 0x{data[error.start]:02x} on line {line} of {part.path}"
            raise CorpusError(part.path, line, f"--input: expected UTF-8 text, found {found}") from None
        marked = position == 0 and data.startswith(codecs.BOM_UTF8)
        yield Block(data.removeprefix(codecs.BOM_UTF8) if marked else data, int(marked))


def _split_plain(file: TextFile, shards: tuple[int, ...]) -> list[Task]:
    edges = [file.size * part // len(shards) for part in range(len(shards))] + [None]
    return [Task((shard,), (Slice(file.path, edges[part], edges[part + 1]),)) for part, shard in enumerate(shards)]


def _split_gzip(file: TextFile, shards: tuple[int, ...]) -> list[Task]:
    passes = max(min(len(shards), _GZIP_PASSES), -(-len(shards) // _OPEN_SHARDS))
    return [Task(shards[part::passes], (Slice(file.path, part=part, parts=passes),)) for part in range(passes)]


def _open(path: str) -> BinaryIO:
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


def _read(part: Slice) -> Iterator[tuple[int, bytes]]:
    """Yields every block of a slice with its place in the text, in bytes."""
    try:
        with _open(part.path) as file:
            if part.start:  # a line that began before `start` belongs to the slice before
                file.seek(part.start - 1)
                file.readline()
            position = file.tell()
            while part.end is None or position < part.end:
                wanted = BLOCK_BYTES if part.end is None else min(BLOCK_BYTES, part.end - position)
                data = file.read(wanted)
                if not data:
                    return
                if not data.endswith(b"\n"):
                    data += file.readline()
                yield position, data
                position += len(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(part.path, 0, f"--input: expected an intact gzip file, found {part.path}: {error}") from None
    except OSError as error:
        found = f"{part.path}: {error.strerror or error}"
        raise CorpusError(part.path, 0, f"--input: expected a file that can be read, found {found}") from None


def _line_number(path: str, position: int) -> int:
    """Returns the number, from 1, of the line that holds byte `position` of the text."""
    line = 1
    with _open(path) as file:
        while position > 0 and (data := file.read(min(BLOCK_BYTES, position))):
            line += data.count(b"\n")
            position -= len(data)
    return line
