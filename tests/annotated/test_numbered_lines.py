"""The lines of files, plain and compressed, and files that cannot be read."""

import gzip
import lzma

import pytest

from elmo_tf.annotated import numbered_lines
from tests.annotated.text_file import assert_refused, write


@pytest.mark.parametrize("name", ["plain", "packed.xz", "packed.gz"])
def test_lines_are_numbered_and_empty_ones_separate_blocks(tmp_path, name):
    path = write(tmp_path, "\ufeff\na\r\nb\u2028c\n \n\nd", name)
    found = [[line[1:] for line in block] for block in numbered_lines.blocks(path)]
    assert found == [[(2, "a"), (3, "b\u2028c")], [(6, "d")]]


def test_files_that_cannot_be_read_are_refused(tmp_path):
    packed = bytearray(gzip.compress(bytes(range(256)) * 9, mtime=0))
    packed[20:40] = bytes(20)
    (tmp_path / "latin1").write_bytes("a O\nna\u00efve O\n".encode("latin-1"))
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"a O\n" * 99)[:40])
    (tmp_path / "damaged.gz").write_bytes(packed)
    messages = {
        "missing": "a readable file, found No such file or directory$",
        "cut.xz": "a readable file, found ",
        "damaged.gz": "a readable file, found ",
    }
    for name, message in messages.items():
        assert_refused(lambda path: list(numbered_lines.lines(path)), tmp_path / name, message)
    assert_refused(lambda path: list(numbered_lines.lines(path)), tmp_path / "latin1", "UTF-8, found ", line=2)
