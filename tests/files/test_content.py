"""What is no UTF-8 text with line feeds is recognized by its first bytes, and text is not taken for it."""

import bz2
import contextlib
import gzip
import io
import lzma

import pytest
from backports import zstd

from elmo_tf.errors import InputError
from elmo_tf.files import content

ENGLISH = "The dog\u2019s owner barked.\nHe was sad.\n"
RUSSIAN = "\u0414\u0430.\n\u041d\u0435\u0442, \u043e\u043d\u0430.\n"
NOT_TEXT = {
    "gzip": (gzip.compress(b"a b\n", mtime=0), "expected UTF-8 text, found a gzip file whose name does not end in .gz"),
    "bz2": (bz2.compress(b"a b\n"), "expected UTF-8 text, found a bzip2 file whose name does not end in .bz2"),
    "xz": (lzma.compress(b"a b\n"), "expected UTF-8 text, found an xz file whose name does not end in .xz"),
    "zstd": (zstd.compress(b"a b\n"), "expected UTF-8 text, found a zstd file whose name does not end in .zst"),
    "zip": (b"PK\x03\x04rest", "expected UTF-8 text, found a zip file"),
    "pdf": (b"%PDF-1.4\n1 0 obj", "expected UTF-8 text, found a PDF file"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "expected UTF-8 text, found a binary file"),
    "marked": (ENGLISH.encode("utf-16"), "UTF-16, not UTF-8; convert it by: iconv -f utf-16 -t utf-8 OLD > NEW"),
    "english le": (
        ENGLISH.encode("utf-16le"),
        "UTF-16, not UTF-8; convert it by: iconv -f utf-16le -t utf-8 OLD > NEW",
    ),
    "english be": (
        ENGLISH.encode("utf-16be"),
        "UTF-16, not UTF-8; convert it by: iconv -f utf-16be -t utf-8 OLD > NEW",
    ),
    "russian le": (
        RUSSIAN.encode("utf-16le"),
        "UTF-16, not UTF-8; convert it by: iconv -f utf-16le -t utf-8 OLD > NEW",
    ),
    "russian be": (
        RUSSIAN.encode("utf-16be"),
        "UTF-16, not UTF-8; convert it by: iconv -f utf-16be -t utf-8 OLD > NEW",
    ),
    "a word": ("dog".encode("utf-16le"), "UTF-16, not UTF-8; convert it by: iconv -f utf-16le -t utf-8 OLD > NEW"),
    "cr": (b"Ana B-PER\rsat O\r\rBo B-PER\r", "its lines end in CR alone; convert it by: tr '\\r' '\\n' < OLD > NEW"),
}
JSON = "JSON, not text; write its text alone, for example by: jq -r .text OLD > NEW"
TEXT = {
    "nothing": b"",
    "a cut character": ("\u00e9" * content.HEADER_BYTES).encode()[: content.HEADER_BYTES - 1] + b"\xc3",
    "latin-1": b"na\xefve\n",
    "a NUL": b"a\nb \0\0 c\0\n",
    "a NUL in a cut character": b"a b\0 c " + "\u00e9".encode()[:1],
    "crlf": b"a\r\nb\rc\r\n",
    "one line with CR": b"one line\r",
    "cut between CR and LF": b"a" * (content.HEADER_BYTES - 1) + b"\r",
    "braces": b'{ "quoted" } : text\n',
}


@pytest.mark.parametrize("kind", NOT_TEXT)
def test_what_is_not_text_is_refused_with_what_to_do(kind):
    header, problem = NOT_TEXT[kind]
    for check in (content.check_text, content.check_prose):
        with pytest.raises(InputError) as caught:
            check("a.txt", header)
        assert str(caught.value) == f"a.txt: {problem}"


@pytest.mark.parametrize(("line_break", "is_text"), [(b"\r", False), (b"\r\n", True), (b"\n", True)])
def test_how_lines_end_is_seen_behind_a_long_first_line(line_break, is_text):
    text = io.BytesIO(line_break.join([b"word " * 5000, b"a\rb", b""]))
    with contextlib.nullcontext() if is_text else pytest.raises(InputError, match="its lines end in CR alone"):
        content.check_text("a.txt", content.read_header(text))


@pytest.mark.parametrize("header", [b'{"text": "A cat ."}\n', b'\xef\xbb\xbf\n[\n {\n  "a \\" b" : 1', b'{"id":1,"te'])
def test_json_is_no_prose(header):
    content.check_text("a.jsonl", header)
    with pytest.raises(InputError) as caught:
        content.check_prose("a.jsonl", header)
    assert str(caught.value) == f"a.jsonl: {JSON}"


@pytest.mark.parametrize("kind", TEXT)
def test_irregular_text_is_text(kind):
    content.check_prose("a.txt", TEXT[kind])
