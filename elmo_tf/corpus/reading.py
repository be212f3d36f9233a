"""Reads a slice of the corpus, a block of whole lines at a time, from plain and compressed files.

Only `\\n` ends a line, so a carriage return is white space like any other. Running text is read in whole paragraphs,
which end at a blank line.
"""

import codecs
import contextlib
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from elmo_tf.corpus import corpora
from elmo_tf.display import with_count
from elmo_tf.errors import InputError, reason
from elmo_tf.files import compressed, content, stores

_LINE, _PARAGRAPH, _RECORD = "line", "paragraph", "record"  # units that are read whole
BLOCK_BYTES = 1 << 17  # read at a time: enough to convert in bulk, but fits in the cache
KEPT_TOKEN_BYTES = 1 << 12  # of a token that fills a block; the rest is skipped
_PIECE_BYTES = 1 << 16  # read at a time within a long line
_MAX_LOOKAHEAD = 1 << 20  # bytes after its end in which a slice looks for the end of its last paragraph
_SPACE = rb"[ \t\v\f\r]"
_LAST_PARAGRAPH = re.compile(rb".*\n" + _SPACE + rb"*\n", re.DOTALL)
_LAST_SPACE = re.compile(rb".*" + _SPACE, re.DOTALL)
_FASTA_BEGIN = re.compile(rb"(\s*\n)?>")  # a header at the beginning of a line, after blank lines
_SEQUENCE = re.compile(rb"[A-Za-z* -]*|[A-Za-z*.-]*")  # residues, gaps, stops; no sentence
_FASTA_ENDINGS = (".fa", ".fasta", ".faa", ".fna")  # the usual ones; used only to choose an error

_log = logging.getLogger("elmo_tf")


class Block(NamedTuple):
    """Whole lines of text, or whole paragraphs."""

    data: bytes
    source: str  # the file
    position: int  # of the first byte in the file's text
    is_continuation: bool = False  # whether the first line, or paragraph, began in the previous block
    is_cut: bool = False  # whether the last line, or paragraph, is too long and continues in the next block
    is_fasta: bool = False  # whether it consists of FASTA records


def inspect(corpus: Iterable[corpora.TextFile], tokenizer: str) -> list[corpora.TextFile]:
    """Returns the files with `is_fasta` set where the tokenizer is `characters` and the text begins like FASTA.

    Raises `InputError` for a file that is clearly not text, or not in the compressed format of its name.
    """

    def inspected(file: corpora.TextFile) -> corpora.TextFile:
        with _named(file.path), _open(file) as text:
            header = content.read_header(text)
        content.check_prose(file.path, header)
        is_fasta = _is_fasta(header.removeprefix(codecs.BOM_UTF8))
        stem, ending = os.path.splitext(file.path)
        name = stem if ending in compressed.OPEN else file.path
        if is_fasta and tokenizer != "characters" and name.lower().endswith(_FASTA_ENDINGS):
            raise InputError(file.path, "is FASTA, which needs --tokenizer characters")
        return file._replace(is_fasta=is_fasta and tokenizer == "characters")

    files = list(stores.map_concurrently(inspected, corpus))
    if fasta := [file.path for file in files if file.is_fasta]:
        _log.info("%s, read as FASTA: %s", with_count(len(fasta), "file"), ", ".join(fasta[:3]))
    return files


def _is_fasta(header: bytes) -> bool:
    """Whether a text that begins with `header` is FASTA. Quotations, too, may begin with `>`."""
    if not _FASTA_BEGIN.match(header):
        return False
    lines = list(filter(None, map(bytes.strip, header.split(b"\n"))))
    sequences = [line for line in lines if not line.startswith(b">")]
    return all(map(_SEQUENCE.fullmatch, sequences)) and (bool(sequences) or len(lines) == 1)


def read_blocks(
    text_slice: corpora.Slice, paragraphs: bool = False, is_whitespace_tokenized: bool = True
) -> Iterator[Block]:
    """Yields the text of a slice, about `BLOCK_BYTES` at a time, in whole lines or, if asked for, `paragraphs`.

    Args:
        paragraphs: whether blank lines separate paragraphs of several lines.
        is_whitespace_tokenized: whether only white space separates tokens. If so, a line without white space is a
            single token, and only its beginning is kept if it is too long for a block; if not, it is cut between
            characters.

    Raises:
        InputError: if the file has changed or is damaged.
        stores.ReadError: if the disk or the network fails.
    """
    with _named(text_slice.file.path), _open(text_slice.file) as text:
        for number, block in enumerate(_blocks(text, text_slice, paragraphs, is_whitespace_tokenized)):
            if number % text_slice.parts == text_slice.part:
                yield block


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Turns exceptions of Python's modules and stores in the block into errors that name the file."""
    try:
        yield
    except (InputError, stores.ReadError, ModuleNotFoundError):
        raise
    except Exception as error:
        module = type(error).__module__.partition(".")[0]
        # For damaged contents, Python's modules raise errors without a number.
        is_damage = (
            isinstance(error, compressed.DAMAGED) and not getattr(error, "errno", None) and module != "apache_beam"
        )
        if is_damage or module == "backports":
            raise InputError(path, f"cannot be decompressed ({error})") from None
        if isinstance(error, OSError) or not stores.is_local(path):
            raise stores.ReadError(f"cannot read {path}: {reason(error)}") from error
        raise


def line_number(block: Block, offset: int) -> int:
    """Returns the number, from 1, of the line of the file that holds byte `offset` of a block."""
    left = block.position
    line = 1 + block.data.count(b"\n", 0, offset)
    with _open(corpora.TextFile(block.source, 0)) as text:
        while left and (data := text.read(min(BLOCK_BYTES, left))):
            line += data.count(b"\n")
            left -= len(data)
    return line


@contextlib.contextmanager
def _open(file: corpora.TextFile) -> Iterator[BinaryIO]:
    """Yields the text of a file, decompressed. Raises `InputError` if it changed since `match`."""
    with stores.open_file(file.path) as stored:
        if file.changed is not None:
            corpora.check_status(file, stores.status(file.path))
        decompress = compressed.OPEN.get(os.path.splitext(file.path)[1])
        yield decompress(stored) if decompress else stored


def _blocks(
    text: BinaryIO, text_slice: corpora.Slice, paragraphs: bool, is_whitespace_tokenized: bool
) -> Iterator[Block]:
    """Yields the blocks of a text that begin in the slice."""
    source, is_fasta = text_slice.file.path, text_slice.file.is_fasta
    unit = _RECORD if is_fasta else _PARAGRAPH if paragraphs else _LINE
    position = _slice_start(text, text_slice.start, unit)
    end = math.inf if text_slice.end is None else _slice_start(text, text_slice.end, unit)
    text.seek(position)
    read, waiting, is_cut = position, b"", False
    while data := text.read(int(min(BLOCK_BYTES, max(end - read, 0)))):
        read += len(data)
        waiting += data
        if len(waiting) < BLOCK_BYTES:
            continue
        last, continues = _split_point(waiting, unit, not is_whitespace_tokenized)
        # A single token or header, too long to be useful: keep its beginning.
        if last == 0:
            rest = len(waiting) - _unfinished(waiting)
            waiting = waiting[: KEPT_TOKEN_BYTES - _unfinished(waiting[:KEPT_TOKEN_BYTES])] + waiting[rest:]
            continue
        yield Block(waiting[:last], source, position, is_cut, continues, is_fasta)
        waiting, is_cut = waiting[last:], continues
        position = read - len(waiting)
    if waiting:
        yield Block(waiting, source, position, is_cut, is_fasta=is_fasta)


def _slice_start(text: BinaryIO, offset: int, unit: str) -> int:
    """Returns where the first line of a slice from `offset` on begins, which is where the previous slice ends.

    In running text that is after the first blank line, but not much beyond `_MAX_LOOKAHEAD`.
    """
    if offset == 0:
        return 0
    text.seek(offset - 1)
    position = offset - 1 + _line_length(text)
    limit = position + (math.inf if unit == _RECORD else _MAX_LOOKAHEAD)
    while unit != _LINE and position < limit:
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


def _split_point(text: bytes, unit: str, inside_words: bool) -> tuple[int, bool]:
    """Returns where to cut `text`, and whether the line, paragraph or record continues after it.

    It is cut after the last whole unit, or else after the last whole line or word in it. If no word is whole, it is cut
    after the last whole character if `inside_words`, as in a language without spaces, or else at 0. The header of a
    record is not cut.
    """
    if unit == _PARAGRAPH and (paragraphs := _LAST_PARAGRAPH.match(text)):
        return paragraphs.end(), False
    if unit == _RECORD and (end := text.rfind(b"\n>") + 1):
        return end, False
    if end := text.rfind(b"\n") + 1:
        return end, unit != _LINE
    if unit == _RECORD and text.removeprefix(codecs.BOM_UTF8).startswith(b">"):
        return 0, True
    words = _LAST_SPACE.match(text)
    if inside_words and not words:
        return len(text) - _unfinished(text), True
    return (words.end() if words else 0), True


def _unfinished(text: bytes) -> int:
    """Returns how many bytes at the end of `text` belong to an incomplete UTF-8 character."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    decoder.decode(text[-3:])
    return len(decoder.getstate()[0])
