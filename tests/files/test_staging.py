"""Files that appear whole or not at all."""

import pytest

from elmo_tf.files import staging


def test_a_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path):
    staging.write_file(tmp_path / "file", b"old")
    staging.write_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        staging.write_file(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
