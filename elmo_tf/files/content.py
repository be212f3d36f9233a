"""Whether a file holds lines of UTF-8 text, by its first bytes."""

import codecs
import re
from typing import IO

from elmo_tf.errors import InputError

HEADER_BYTES = 1 << 12  # of a file's text that `check_text` needs
_LINE_BYTES = 1 << 17  # more to read of a long first line, to find its end
# First bytes of files that would otherwise pass for text with a few irregular lines.
_NOT_TEXT = {
    b"\x1f\x8b": "a gzip file whose name does not end in .gz",
    b"BZh91AY&SY": "a bzip2 file whose name does not end in .bz2",
    b"\xfd7zXZ\x00": "an xz file whose name does not end in .xz",
    b"PK\x03\x04": "a zip file",
    b"\x28\xb5\x2f\xfd": "a zstd file whose name does not end in .zst",
    b"%PDF-": "a PDF file",
}
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WHITE_SPACE = b"\t\n\r "
_JSON_BEGIN = re.compile(rb'\s*(\[\s*)?\{\s*"(?:[^"\\\n]|\\.)*"\s*:')  # an object, or a list of them


def read_header(text: IO[bytes]) -> bytes:
    """Returns the beginning of a file's text, with a line feed if there is one within reach."""
    header = text.read(HEADER_BYTES)
    return header if b"\n" in header else header + text.readline(_LINE_BYTES)


def check_text(path: str, header: bytes) -> None:
    """Raises `InputError` unless a file that begins with `header` is text whose lines end in line feeds."""
    for magic, kind in _NOT_TEXT.items():
        if header.startswith(magic):
            raise InputError(path, "UTF-8 text", kind)
    if encoding := _UTF16.get(header[:2]) or _unmarked_utf16(header):
        raise InputError(path, f"UTF-16, not UTF-8; convert it by: iconv -f {encoding} -t utf-8 OLD > NEW")
    if b"\0" in header and not _is_utf8_beginning(header):
        raise InputError(path, "UTF-8 text", "a binary file")
    if b"\r" in header.rstrip(b"\r") and b"\n" not in header:
        raise InputError(path, "its lines end in CR alone; convert it by: tr '\\r' '\\n' < OLD > NEW")


def check_prose(path: str, header: bytes) -> None:
    """Raises `InputError` for what `check_text` refuses, and for JSON."""
    check_text(path, header)
    if _JSON_BEGIN.match(header.removeprefix(codecs.BOM_UTF8)):
        raise InputError(path, "JSON, not text; write its text alone, for example by: jq -r .text OLD > NEW")


def _unmarked_utf16(header: bytes) -> str | None:
    """Returns the encoding of UTF-16 without a byte order mark, in which white space comes with a NUL.

    Text without white space is recognized only if it is ASCII.
    """
    num_spaces = sum(header.count(byte) for byte in _WHITE_SPACE)
    for encoding in ("utf-16le", "utf-16be"):
        units = header[: len(header) // 2 * 2].decode(encoding, "replace")
        if num_spaces:
            is_utf16 = 2 * sum(units.count(chr(byte)) for byte in _WHITE_SPACE) > num_spaces
        else:
            is_utf16 = bool(units) and units.isascii() and "\0" not in units
        if is_utf16:
            return encoding
    return None


def _is_utf8_beginning(header: bytes) -> bool:
    """Whether bytes are UTF-8, the last character perhaps incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(header)
    except UnicodeDecodeError:
        return False
    return True
