"""Files that appear whole or not at all."""

import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import staging


def test_a_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path):
    staging.write_file(tmp_path / "file", b"old")
    staging.write_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        staging.write_file(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_in_use_or_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=rf"^path: expected a folder that does not exist yet, found one: {tmp_path}$"):
        staging.check_absent(tmp_path)
    message = rf"^path: expected a folder that can be made, found Not a directory: {tmp_path}/file/new$"
    with pytest.raises(InputError, match=message), staging.new_folder(tmp_path / "file" / "new"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_link_is_followed_when_a_file_is_written(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / ".file.incomplete").symlink_to(target)
    message = rf"^{tmp_path}/\.file\.incomplete: expected no link, found one, which is not followed$"
    with pytest.raises(InputError, match=message):
        staging.write_file(tmp_path / "file", b"new")
    assert (tmp_path / ".file.incomplete").is_symlink()
    (tmp_path / "link").symlink_to(target)
    staging.write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_bytes() == b"new"
    assert target.read_bytes() == b"precious"
