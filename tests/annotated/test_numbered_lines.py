"""The lines of files, plain and compressed, and files that cannot be read."""

import bz2
import gzip
import lzma
import os
import zipfile

import pytest
from backports import zstd

from elmo_tf.annotated import numbered_lines
from elmo_tf.errors import InputError
from tests.annotated.text_file import write


@pytest.mark.parametrize("name", ["plain", "packed.xz", "packed.gz", "packed.zst"])
def test_lines_are_numbered_and_empty_ones_separate_blocks(tmp_path, name):
    path = write(tmp_path, "\ufeff\na\r\nb\u2028c\n \n\nd", name)
    blocks = [[line[1:] for line in block] for block in numbered_lines.blocks(path)]
    assert blocks == [[(2, "a"), (3, "b\u2028c")], [(6, "d")]]


def test_files_that_cannot_be_read_are_refused_with_what_to_do(tmp_path):
    packed = bytearray(gzip.compress(bytes(range(256)) * 9, mtime=0))
    packed[20:40] = bytes(20)
    contents = {
        "latin1": "a O\nna\u00efve O\n".encode("latin-1"),
        "cut.xz": lzma.compress(b"a O\n" * 99)[:40],
        "damaged.gz": packed,
        "damaged.zst": zstd.compress(b"a O\n" * 99)[:-3],
        "not.zst": b"a O\n",
        "damaged.bz2": bz2.compress(b"a O\n") + b"BZh91AY&SZ" + bz2.compress(b"b O\n")[10:],
        "utf16": "a O\n".encode("utf-16"),
        "unmarked": "a O\nb O\n".encode("utf-16le"),
        "cr": b"Ana B-PER\rsat O\r\rBo B-PER\rate O\r",
        "late cr": b"# " + b"word " * 5000 + b"\rsat O\r\rBo B-PER\rate O\r",
        "folder.tar.gz": gzip.compress(b"a"),
        "other.zip": b"no archive",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    with zipfile.ZipFile(tmp_path / "several.zip", "w") as archive:
        archive.writestr("a.txt", "a")
        archive.writestr("b.txt", "b")
    messages = {
        "latin1": ", line 2: not UTF-8 ",
        "cut.xz": ": cannot be read ",
        "damaged.gz": ": cannot be read ",
        "damaged.zst": ": cannot be read ",
        "not.zst": ": cannot be read ",
        "damaged.bz2": ": cannot be read ",
        "utf16": ": UTF-16, not UTF-8; convert it by: iconv -f utf-16 ",
        "unmarked": ": UTF-16, not UTF-8; convert it by: iconv -f utf-16le ",
        "cr": ": its lines end in CR alone; ",
        "late cr": ": its lines end in CR alone; ",
        "folder.tar.gz": r": an archive of files: unpack it \(tar -xf .*\) and give the file to read$",
        "other.zip": r": cannot be read \(File is not a zip file\)$",
        "several.zip": r": a zip archive of 2 files: unpack it and give one \(a.txt, b.txt\)$",
        "pipe": ": this input is read twice, so it must be a file, not a pipe$",
        "missing": ": no such file$",
    }
    for name, message in messages.items():
        with pytest.raises(InputError, match=f"^{tmp_path / name}{message}"):
            list(numbered_lines.lines(tmp_path / name))


def test_a_byte_order_mark_inside_a_joined_file_is_dropped(tmp_path):
    path = write(tmp_path, "\ufeffa\n\ufeff\n\ufeffb\n")
    assert [line.text for line in numbered_lines.lines(path)] == ["a", "", "b"]
