"""The lines of files, plain and compressed, and files that cannot be read."""

import gzip
import lzma
import os
import zipfile

import pytest

from elmo_tf.annotated import numbered_lines
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write


@pytest.mark.parametrize("name", ["plain", "packed.xz", "packed.gz"])
def test_lines_are_numbered_and_empty_ones_separate_blocks(tmp_path, name):
    path = write(tmp_path, "\ufeff\na\r\nb\u2028c\n \n\nd", name)
    blocks = [[line[1:] for line in block] for block in numbered_lines.blocks(path)]
    assert blocks == [[(2, "a"), (3, "b\u2028c")], [(6, "d")]]


def test_files_that_cannot_be_read_are_refused(tmp_path):
    packed = bytearray(gzip.compress(bytes(range(256)) * 9, mtime=0))
    packed[20:40] = bytes(20)
    (tmp_path / "latin1").write_bytes("a O\nna\u00efve O\n".encode("latin-1"))
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"a O\n" * 99)[:40])
    (tmp_path / "damaged.gz").write_bytes(packed)
    (tmp_path / "utf16").write_bytes("a O\n".encode("utf-16"))
    messages = {"missing": "no such file$", "cut.xz": "cannot be read ", "damaged.gz": "cannot be read "}
    for name, message in messages.items():
        assert_refused(lambda path: list(numbered_lines.lines(path)), tmp_path / name, message)
    assert_refused(lambda path: list(numbered_lines.lines(path)), tmp_path / "latin1", "not UTF-8 ", line=2)
    os.mkfifo(tmp_path / "pipe")
    message = "it is read twice, so it must be a file, not a pipe$"
    assert_refused(lambda path: list(numbered_lines.lines(path)), tmp_path / "pipe", message)
    message = "UTF-16, not UTF-8; convert it by: iconv -f utf-16 "
    assert_refused(lambda path: list(numbered_lines.lines(path)), tmp_path / "utf16", message, line=1)


def test_archives_of_several_files_are_refused_with_what_to_do(tmp_path):
    with zipfile.ZipFile(tmp_path / "several.zip", "w") as archive:
        archive.writestr("a.txt", "a")
        archive.writestr("b.txt", "b")
    (tmp_path / "folder.tar.gz").write_bytes(gzip.compress(b"a"))
    (tmp_path / "other.zip").write_bytes(b"no archive")
    messages = {
        "several.zip": r"a zip archive of 2 files: unpack it and give one \(a.txt, b.txt\)$",
        "folder.tar.gz": r"an archive of files: unpack it \(tar -xf .*\) and give the file that you want$",
        "other.zip": r"cannot be read \(File is not a zip file\)$",
    }
    for name, message in messages.items():
        with pytest.raises(InputError, match=f"^{tmp_path / name}: {message}"):
            list(numbered_lines.lines(tmp_path / name))


def test_a_byte_order_mark_inside_a_joined_file_is_dropped(tmp_path):
    path = write(tmp_path, "\ufeffa\n\ufeff\n\ufeffb\n")
    assert [line.text for line in numbered_lines.lines(path)] == ["a", "", "b"]
