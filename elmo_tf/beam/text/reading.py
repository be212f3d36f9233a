"""Reads a slice of the corpus, a block of whole lines at a time, from plain and compressed files.

Only `\\n` ends a line, so a carriage return is white space like any other. Running text is read in whole paragraphs,
which end at a blank line.
"""

import bz2
import codecs
import contextlib
import gzip
import lzma
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from apache_beam.io.filesystem import BeamIOError
from backports import zstd

from elmo_tf.beam.text import corpora, filesystems
from elmo_tf.errors import InputError

_LINE, _PARAGRAPH, _RECORD = "line", "paragraph", "record"  # what is read whole
BLOCK_BYTES = 1 << 17  # read at a time: enough to convert in bulk, and fits in the cache
LONGEST_BYTES = 1 << 12  # kept of a token that fills a block; the rest is skipped
_PIECE_BYTES = 1 << 16  # read at a time of a line of any length
_FAR = 1 << 20  # how far beyond its end a slice looks for the end of its last paragraph
_SPACE = rb"[ \t\v\f\r]"
_LAST_PARAGRAPH = re.compile(rb".*\n" + _SPACE + rb"*\n", re.DOTALL)
_LAST_SPACE = re.compile(rb".*" + _SPACE, re.DOTALL)
# As `zstd --long=31` writes, which is common in large text collections. A file takes only the memory that it needs.
_LARGEST_WINDOW = {zstd.DecompressionParameter.window_log_max: 31}
_OPEN: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda file: zstd.ZstdFile(file, options=_LARGEST_WINDOW),
}
_BROKEN = (EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, OSError)


class Block(NamedTuple):
    """Whole lines of text, or whole paragraphs."""

    data: bytes
    source: str  # the file
    position: int  # of the first byte in the file's text
    is_continuation: bool = False  # whether the first line, or paragraph, began in the previous block
    is_cut: bool = False  # whether the last one is too long for the block and continues in the next


def read_blocks(
    part: corpora.Slice, paragraphs: bool = False, fasta: bool = False, spaced: bool = True
) -> Iterator[Block]:
    """Yields the text of a slice, about `BLOCK_BYTES` at a time, in whole lines or, if asked for, `paragraphs`.

    Args:
        part: the slice.
        paragraphs: whether blank lines separate paragraphs of several lines.
        fasta: whether files with a FASTA name are read in whole records.
        spaced: whether only white space separates tokens. If not, a line without any is cut between characters where
            it is too long for a block; if so, it is one token, of which only the beginning is kept.

    Raises:
        InputError: if a file is not in the compressed format that its name implies, or is damaged.
        filesystems.ReadError: if the disk or the network fails.
    """
    path = part.file.path
    try:
        with _open(path) as text:
            for number, block in enumerate(_blocks(text, part, paragraphs, fasta, spaced)):
                if number % part.parts == part.part:
                    yield block
    except filesystems.ReadError:
        raise
    except _BROKEN as error:
        # Errors of Python's own modules about damaged contents have no number.
        if isinstance(error, BeamIOError) or getattr(error, "errno", None):
            raise filesystems.ReadError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
        raise InputError(path, "an intact compressed file", str(error)) from None
    except Exception as error:  # of a store
        if filesystems.is_local(path) or isinstance(error, InputError):
            raise
        raise filesystems.ReadError(f"cannot read {path}: {error}") from error


def line_number(block: Block, offset: int) -> int:
    """Returns the number, from 1, of the line of the file that holds byte `offset` of a block."""
    left = block.position
    line = 1 + block.data.count(b"\n", 0, offset)
    with _open(block.source) as text:
        while left and (data := text.read(min(BLOCK_BYTES, left))):
            line += data.count(b"\n")
            left -= len(data)
    return line


@contextlib.contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    """Yields the text of a file, decompressed."""
    with filesystems.open_file(path) as file:
        decompress = _OPEN.get(os.path.splitext(path)[1])
        yield decompress(file) if decompress else file


def _blocks(text: BinaryIO, part: corpora.Slice, paragraphs: bool, fasta: bool, spaced: bool) -> Iterator[Block]:
    """Yields the blocks of a text that begin in the slice."""
    source = part.file.path
    unit = _RECORD if fasta and corpora.is_fasta(source) else _PARAGRAPH if paragraphs else _LINE
    position = _begin(text, part.start, unit)
    end = math.inf if part.end is None else _begin(text, part.end, unit)
    if part.file.is_divisible:
        text.seek(position)
    read, waiting, is_cut = position, b"", False
    while data := text.read(int(min(BLOCK_BYTES, max(end - read, 0)))):
        read += len(data)
        waiting += data
        if len(waiting) < BLOCK_BYTES:
            continue
        last, continues = _last_end(waiting, unit, not spaced)
        # All of it is one token or header, too long to be of use: keep its beginning.
        if last == 0:
            rest = len(waiting) - _unfinished(waiting)
            waiting = waiting[: LONGEST_BYTES - _unfinished(waiting[:LONGEST_BYTES])] + waiting[rest:]
            continue
        yield Block(waiting[:last], source, position, is_continuation=is_cut, is_cut=continues)
        waiting, is_cut = waiting[last:], continues
        position = read - len(waiting)
    if waiting:
        yield Block(waiting, source, position, is_continuation=is_cut)


def _begin(text: BinaryIO, offset: int, unit: str) -> int:
    """Returns where the first line of a slice from `offset` on begins, which is where the previous slice ends.

    In running text that is after the first blank line, but not much further than `_FAR`.
    """
    if offset == 0:
        return 0
    text.seek(offset - 1)
    position = offset - 1 + _line_length(text)
    far = position + (math.inf if unit == _RECORD else _FAR)
    while unit != _LINE and position < far:
        line = text.readline(_PIECE_BYTES)
        if unit == _RECORD and line.startswith(b">"):
            break
        position += len(line) if line.endswith(b"\n") else len(line) + _line_length(text)
        if not line or (unit == _PARAGRAPH and not line.strip()):
            break
    return position


def _line_length(text: BinaryIO) -> int:
    """Reads to the end of the line; returns the number of bytes read."""
    length = 0
    while piece := text.readline(_PIECE_BYTES):
        length += len(piece)
        if piece.endswith(b"\n"):
            break
    return length


def _last_end(text: bytes, unit: str, anywhere: bool) -> tuple[int, bool]:
    """Returns where to cut `text`, and whether the line, paragraph or record continues after it.

    It is cut after the last whole unit, or else after the last whole line or word in it. If no word is whole, it is cut
    after the last whole character if `anywhere`, as in a language without spaces, or else at 0. The header of a record
    is not cut.
    """
    if unit == _PARAGRAPH and (found := _LAST_PARAGRAPH.match(text)):
        return found.end(), False
    if unit == _RECORD and (end := text.rfind(b"\n>") + 1):
        return end, False
    if end := text.rfind(b"\n") + 1:
        return end, unit != _LINE
    if unit == _RECORD and text.removeprefix(codecs.BOM_UTF8).startswith(b">"):
        return 0, True
    found = _LAST_SPACE.match(text)
    if anywhere and not found:
        return len(text) - _unfinished(text), True
    return (found.end() if found else 0), True


def _unfinished(text: bytes) -> int:
    """Returns how many bytes at the end of `text` belong to an incomplete UTF-8 character."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    decoder.decode(text[-3:])
    return len(decoder.getstate()[0])
