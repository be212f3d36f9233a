"""The lines of files, plain and compressed, and files that cannot be read."""

import gzip
import lzma

import pytest

from elmo_tf.annotated import numbered_lines
from elmo_tf.errors import InputError
from tests.annotated.text_file import write


@pytest.mark.parametrize("name", ["plain", "packed.xz", "packed.gz"])
def test_lines_are_numbered_and_empty_ones_separate_blocks(tmp_path, name):
    path = write(tmp_path, "\ufeff\na\r\nb\u2028c\n \n\nd", name)
    assert list(numbered_lines.blocks(path)) == [[(2, "a"), (3, "b\u2028c")], [(6, "d")]]


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "latin1").write_bytes("na\u00efve O\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"^path: expected UTF-8, found .* in .*latin1$"):
        list(numbered_lines.numbered_lines(tmp_path / "latin1"))
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"a O\n" * 99)[:40])
    packed = bytearray(gzip.compress(bytes(range(256)) * 9, mtime=0))
    packed[20:40] = bytes(20)
    (tmp_path / "damaged.gz").write_bytes(packed)
    with pytest.raises(InputError, match=r"a readable file, found No such file or directory: /[^']*missing$"):
        list(numbered_lines.numbered_lines(tmp_path / "missing"))
    for name in ("cut.xz", "damaged.gz"):
        with pytest.raises(InputError, match=f"^path: expected a readable file, found .*: .*{name}$"):
            list(numbered_lines.numbered_lines(tmp_path / name))
