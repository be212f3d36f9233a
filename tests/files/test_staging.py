"""Files that appear whole or not at all."""

import errno
import os

import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import staging, stores


def test_a_file_or_a_link_is_replaced_and_one_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    for name in ("file", "link"):
        stores.write(tmp_path / name, b"new")
    with pytest.raises(stores.WriteError, match=f"^cannot write {tmp_path}/folder: Is a directory$"):
        stores.write(tmp_path / "folder", b"new")
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert contents == {"file": b"new", "link": b"new", "target": b"precious"}
    assert len(list(tmp_path.iterdir())) == 4


def test_a_link_to_nothing_is_not_followed_as_output_nor_above_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "link", tmp_path / "link" / "1"):
        message = rf"^{path}: a link to a path that does not exist; it is not followed$"
        with pytest.raises(InputError, match=message), staging.new_folder(path):
            pass
        with pytest.raises(InputError, match=message):
            staging.check_absent(path)
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_a_folder_in_use_or_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=rf"^{tmp_path}: this folder exists and is not empty; name a new folder$"):
        staging.check_absent(tmp_path)
    message = rf"^{tmp_path}/file/new: the folder cannot be made \(Not a directory\)$"
    with pytest.raises(InputError, match=message), staging.new_folder(tmp_path / "file" / "new"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_appears_with_its_parents_when_it_is_complete_or_not_at_all(tmp_path):
    new = tmp_path / "a" / "b" / "new"
    with pytest.raises(KeyboardInterrupt), staging.new_folder(new) as folder:
        (folder / "file").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with staging.new_folder(new) as folder:
        (folder / "file").touch()
        assert folder.parent == new.parent and not new.exists()
    assert [path.name for path in new.iterdir()] == ["file"]


def test_a_mount_point_the_current_folder_and_patterns_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^\.: a mount point or the current folder, which cannot be replaced"):
        staging.check_absent(".")
    for name, problem in (("run[1]", "as a pattern"), ("caf\udce9", "not UTF-8"), ("a\\b", "as a pattern")):
        with pytest.raises(InputError, match=problem):
            staging.check_for_tensorflow(name)
    staging.check_for_tensorflow("caf\u00e9 100% (1) {2}")


def test_an_empty_folder_behind_a_link_is_filled(tmp_path):
    (tmp_path / "disk" / "empty").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "empty")
    with staging.new_folder(tmp_path / "link") as folder:
        (folder / "file").touch()
        assert folder.parent == tmp_path / "disk"
    assert [path.name for path in (tmp_path / "link").iterdir()] == ["file"]


def test_each_writer_of_a_file_has_a_temporary_file_of_its_own(tmp_path, monkeypatch):
    used, replace = [], os.replace

    def replace_after_another(staged, target):
        used.append(staged)
        if len(used) == 1:
            stores.write(target, b"second")
        replace(staged, target)

    monkeypatch.setattr(os, "replace", replace_after_another)
    stores.write(tmp_path / "file", b"first")
    assert len(set(used)) == 2
    assert (tmp_path / "file").read_bytes() == b"first"


def test_an_error_of_the_disk_names_the_folder(tmp_path):
    with pytest.raises(OSError, match="No space left on device") as caught, staging.new_folder(tmp_path / "new"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "new")
    assert not list(tmp_path.iterdir())
