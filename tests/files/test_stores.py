"""Files of remote stores: their sizes, and what refuses."""

import importlib.util
import re
from unittest import mock

import pytest
from apache_beam.io.filesystem import BeamIOError

from elmo_tf.corpus import corpora
from elmo_tf.errors import InputError
from elmo_tf.files import staging, stores
from tests.beam import memory_store

NAMES = ("a.txt", "empty", "deep/b.txt", "deep/deeper/c.txt", "deep/empty", "other/d.txt")


@pytest.fixture(autouse=True)
def files(store):
    store.update({f"memory://in/{name}": b"" if name.endswith("empty") else b"of a file\n" for name in NAMES})


def test_a_folder_lists_its_files_here_and_in_a_store(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"of a file\n")
    assert stores.names(str(tmp_path)) == ["a.txt"]
    assert stores.names(str(tmp_path / "none")) == stores.names("memory://none") == []
    assert sorted(stores.names("memory://in/deep")) == ["b.txt", "deeper/c.txt", "empty"]
    assert stores.status("memory://in/a.txt") == (10, 0)
    assert stores.status(str(tmp_path / "a.txt")) == (10, (tmp_path / "a.txt").stat().st_mtime_ns)


def test_nothing_appears_if_the_block_fails(tmp_path):
    for folder in (str(tmp_path), "memory://out"):
        with pytest.raises(KeyError), stores.create(stores.join(folder, "a")) as file:
            file.write(b"x")
            raise KeyError
        assert stores.names(folder) == []


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(stores.staging, "temporary_name", lambda name: "staged")
    (tmp_path / "staged").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(stores.WriteError, match="File exists"), stores.create(f"{tmp_path}/a"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_being_written_is_hidden_here_and_in_a_store(tmp_path):
    for folder in (str(tmp_path), "memory://out"):
        with stores.create(stores.join(folder, "scores.json")) as file:
            file.write(b"x")
            if folder != str(tmp_path):
                file.close()  # a store has a file from then on
            (unfinished,) = stores.names(folder)
            assert unfinished.startswith(".scores.json.incomplete-")
            assert staging.is_temporary(unfinished)
        assert stores.names(folder) == ["scores.json"]


def test_a_path_to_delete_is_no_glob(tmp_path):
    paths = [tmp_path / name / "info.json" for name in ("data1", "data[1]")]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    stores.delete([str(paths[1]), str(tmp_path / "none"), str(tmp_path / "data1")])
    assert [path.exists() for path in paths] == [True, False]


def test_a_missing_local_file_is_one_line(tmp_path):
    missing = str(tmp_path / "a")
    for ask in (stores.read, stores.open_file):
        with pytest.raises(stores.ReadError, match=f"^cannot read {missing}: No such file .*; all workers need"):
            ask(missing)


def test_whatever_a_store_raises_is_one_error_with_its_innermost_words(monkeypatch):
    error = BeamIOError("List operation failed", {"a": BeamIOError("inner", {"b": RuntimeError("No\n entry")})})
    nested = BeamIOError("Rename operation failed", {"a": BeamIOError("outer", RuntimeError("No entry"))})
    forbidden = type("Forbidden", (Exception,), {"__module__": "google.api_core.exceptions"})("No entry")
    for raised in (error, nested, forbidden):
        for name in ("rename", "delete"):
            monkeypatch.setattr(memory_store.MemoryFileSystem, name, mock.Mock(side_effect=raised))
        with pytest.raises(stores.WriteError, match=r"^cannot write memory://in/b: No entry$"):
            stores.write("memory://in/b", b"content")
    for name in ("_list", "exists", "open", "metadata"):
        monkeypatch.setattr(memory_store.MemoryFileSystem, name, mock.Mock(side_effect=error))
    for ask in (stores.exists, stores.read, stores.names, stores.status):
        with pytest.raises(stores.ReadError, match=r"^cannot read memory://in/a\S*: No entry$"):
            ask("memory://in/a")


def test_a_store_with_folders_is_refused_and_a_missing_package_named_with_the_command_that_installs_it(monkeypatch):
    for path in ("hdfs://name/a", "file:///a"):
        with pytest.raises(InputError, match=rf"^{path}: \w+:// is not supported; use a local path without a scheme,"):
            corpora.match([path])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for path, extra in (("s3://bucket/a", "aws"), ("azfs://a/b/c", "azure"), ("nowhere://a", "nowhere")):
        problem = f"{path.partition(':')[0]}:// needs apache-beam[{extra}]: pip install 'apache-beam[{extra}]'"
        with pytest.raises(InputError, match=rf"^{path}: {re.escape(problem)}$"):
            stores.check_store(path)
