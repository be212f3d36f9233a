"""Irregular text: rules, and counts of how often each applied."""

import codecs
import collections
import operator
import re
import unicodedata
from typing import NamedTuple

from elmo_tf.corpus import reading

MAX_LINE_BYTES = 1 << 16  # a longer line, or paragraph of running text, is split
MAX_TOKEN_BYTES = 1000  # a longer token is cut, so no word of a vocabulary is longer


# Treatment of irregular text; `info.json` has the count of each.
RULES = {
    "invalid_utf8_lines": "dropped; to keep them, convert the file, for example with iconv",
    "blank_lines": "dropped",
    "byte_order_marks": "dropped at the beginning of a line",
    "carriage_return_lines": "kept; a carriage return is white space",
    "nul_lines": "kept; NUL is a character like any other",
    "non_nfc_lines": "kept; unicodedata.normalize('NFC', text) in Python gives each letter one form",
    "unterminated_lines": "kept",
    "long_lines": f"cut into pieces of {MAX_LINE_BYTES:,} bytes at most, at white space if there is any",
    "long_tokens": f"cut to {MAX_TOKEN_BYTES:,} bytes",
}
_NOT_RESIDUES = b" \t\r\v\f\n*"  # white space and stops
# Only at the beginning of a token: searching from each of its bytes would take quadratic time.
_LONG_TOKEN = re.compile(rb"(?<!\S)(\S{%d})\S+" % MAX_TOKEN_BYTES)
# Up to white space or, if there is none, to the end of a character.
_CHUNK = re.compile(rb".{1,%d}(?:\s|\Z)|.{1,%d}(?![\x80-\xBF])" % ((MAX_LINE_BYTES,) * 2), re.DOTALL)


class Text(NamedTuple):
    """The usable text of a block."""

    lines: list[bytes]  # or paragraphs: valid UTF-8, without line feeds; blank ones only if lines are numbered
    irregular: collections.Counter  # how often each of `RULES` applied


class Cleaner(NamedTuple):
    """Splits blocks of text into lines or paragraphs."""

    paragraphs: bool  # whether blank lines separate paragraphs of several lines
    is_whitespace_tokenized: bool = True  # whether only white space separates tokens; if not, see `shorten`
    numbered: bool = False  # whether lines keep their numbers: no line is split, and a dropped line becomes empty

    def clean(self, block: reading.Block) -> Text:
        """Returns the usable text of a block. In FASTA, that is the sequences, after a name and a tab if `numbered`."""
        records = block.is_fasta
        lines = block.data.removesuffix(b"\n").split(b"\n")
        irregular = self._irregular(block, lines)  # `long_lines` is added below
        if irregular["byte_order_marks"]:
            lines = [line.removeprefix(codecs.BOM_UTF8) for line in lines]
        # An invalid line becomes blank, which ends a paragraph. In FASTA, it may be a header: only bytes are dropped.
        if irregular["invalid_utf8_lines"]:
            lines = [line if _is_utf8(line) else _valid(line) if records else b"" for line in lines]
        if irregular["long_tokens"]:
            lines = [_LONG_TOKEN.sub(lambda token: _valid(token[1]), line) for line in lines]
        units = _joined(lines) if self.paragraphs else lines
        if records:
            units = _sequences(lines, block.is_continuation, self.numbered)
        if self.numbered:
            return Text(units, irregular)
        if block.is_cut or max(map(len, units), default=0) > MAX_LINE_BYTES:
            # A unit that several blocks share is counted where it begins.
            is_long = [len(unit.rstrip(b" ")) > MAX_LINE_BYTES for unit in units]
            is_long[-1] |= block.is_cut and bool(units[-1].strip())
            is_long[0] &= not block.is_continuation
            irregular["long_lines"] = sum(is_long)
            units = [piece for unit in units for piece in _CHUNK.findall(unit)]
        return Text([unit for unit in units if unit and not unit.isspace()], +irregular)

    def _irregular(self, block: reading.Block, lines: list[bytes]) -> collections.Counter:
        """Returns how often each of `RULES` applies in a block, except `long_lines`."""
        data, counts = block.data, collections.Counter[str]()
        counts["unterminated_lines"] = int(not data.endswith(b"\n") and not block.is_cut)
        for byte, rule in ((b"\r", "carriage_return_lines"), (b"\0", "nul_lines")):
            counts[rule] = sum(byte in line for line in lines) if byte in data else 0
        if codecs.BOM_UTF8 in data:  # concatenated files have them inside
            counts["byte_order_marks"] = sum(line.startswith(codecs.BOM_UTF8) for line in lines)
        counts["invalid_utf8_lines"] = 0 if _is_utf8(data) else sum(not _is_utf8(line) for line in lines)
        if not data.isascii():
            counts["non_nfc_lines"] = sum(not _is_nfc(line) and _is_utf8(line) for line in lines)
        by_line = not self.paragraphs and not block.is_fasta
        counts["blank_lines"] = sum(map(operator.not_, map(bytes.strip, lines))) if by_line else 0
        if self.is_whitespace_tokenized and max(map(len, lines)) > MAX_TOKEN_BYTES:
            counts["long_tokens"] = sum(len(_LONG_TOKEN.findall(line)) for line in lines if len(line) > MAX_TOKEN_BYTES)
        return +counts


def shorten(words: list[bytes], irregular: collections.Counter) -> list[bytes]:
    """Applies the rule for long tokens to a tokenizer's words, and counts its uses.

    In a language without spaces, the text between white space may be a paragraph rather than a token.
    """
    if not (long := sum(len(word) > MAX_TOKEN_BYTES for word in words)):
        return words
    irregular["long_tokens"] += long
    return [_valid(word[:MAX_TOKEN_BYTES]) for word in words]


def _joined(lines: list[bytes]) -> list[bytes]:
    """Returns the paragraphs, which blank lines separate, each as a line."""
    return b"".join([line + b" " if line and not line.isspace() else b"\n" for line in lines]).split(b"\n")


def _sequences(lines: list[bytes], continues: bool, named: bool) -> list[bytes]:
    """Returns the sequences of FASTA records without `*`, each after its identifier and a tab if `named`.

    If a record `continues` from the previous block, the rest of its sequence is the first.
    """
    continuation, *records = (b"\n" + b"\n".join(lines)).split(b"\n>")
    sequences = [continuation.translate(None, _NOT_RESIDUES)] if continues else []
    for record in records:
        header, _, sequence = record.partition(b"\n")
        name = b"".join(header.split(None, 1)[:1]) + b"\t" if named else b""
        sequences.append(name + sequence.translate(None, _NOT_RESIDUES))
    return sequences


def _valid(text: bytes) -> bytes:
    """Returns a text without bytes that are not UTF-8."""
    return text.decode(errors="ignore").encode()


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_nfc(text: bytes) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFC", text.decode(errors="replace"))
