"""Published models by name: the table, and their files from a server on this machine that behaves as real ones may."""

import concurrent.futures
import dataclasses
import hashlib
import json
import pathlib
import pwd
import re
import socket
import time

import pytest

from elmo_tf import cli
from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.files import download
from elmo_tf.published import models
from elmo_tf.savedmodel import verification
from tests.files.file_server import serve
from tests.published import published_files

VALUES = published_files.options()


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    return [path.read_bytes() for path in published_files.write_pair(folder, VALUES, published_files.draw_hdf5(VALUES))]


@pytest.fixture
def server(pair, monkeypatch):
    """A server with the files of `small` at their paths, and a row of the table that has their size and checksum."""
    options, weights = pair
    row = models.find("small")
    row = dataclasses.replace(row, size=len(weights), sha256=hashlib.sha256(weights).hexdigest())
    monkeypatch.setattr(models, "MODELS", (*(model for model in models.MODELS if model.name != "small"), row))
    monkeypatch.setattr(download, "_RETRY_SECONDS", (0, 0))
    with serve(b"") as running:
        running.files = {f"/elmo/{row.options}": options, f"/elmo/{row.weights}": weights}
        monkeypatch.setenv(models.MIRROR_VARIABLE, f"http://127.0.0.1:{running.server_port}/elmo/")
        yield running


def fetch(name: str = "small") -> models.Files:
    return models.find(name).files()


def left_in(home: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and path.name != ".lock")


def test_the_table_has_one_row_a_name_and_the_sizes_of_the_presets_of_that_name():
    rows = {model.name: model for model in models.MODELS}
    assert len(rows) == len(models.MODELS)
    assert [name for name, model in rows.items() if model.comes_with_package] == ["english", "english-ner"]
    for name, model in rows.items():
        if name in config_lib.PRESETS:
            assert model.dim == 2 * config_lib.PRESETS[name].model.lstm.projection_dim
        assert model.sha256 is None or (model.size and re.fullmatch("[0-9a-f]{64}", model.sha256))
    assert (rows["original"].checked, rows["medium"].checked) == ("SHA-256", "arrays")
    message = r"^smal: no model of this name; did you mean small\? \(expected one of the models english, "
    with pytest.raises(InputError, match=message):
        models.find("smal")


def test_addresses_are_those_in_use_and_a_mirror_takes_their_place(monkeypatch):
    monkeypatch.delenv(models.MIRROR_VARIABLE, raising=False)
    size = "2x4096_512_2048cnn_2xhighway_5.5B"
    assert models.find("original-5.5B").urls == {
        "options.json": f"https://allennlp.s3.amazonaws.com/models/elmo/{size}/elmo_{size}_options.json",
        "weights.hdf5": f"https://allennlp.s3.amazonaws.com/models/elmo/{size}/elmo_{size}_weights.hdf5",
    }
    monkeypatch.setenv(models.MIRROR_VARIABLE, "http://here/")
    assert models.find("english").urls == {}
    assert models.find("pt-brwac").urls["options.json"] == "http://here/contributed/pt/brwac/options.json"


def test_a_model_of_unknown_checksum_is_verified_by_its_arrays(monkeypatch, tmp_path):
    monkeypatch.setenv(models.HOME_VARIABLE, str(tmp_path))
    (tmp_path / "medium").mkdir()
    values = published_files.options()
    _, weights = published_files.write_pair(tmp_path / "medium", values, published_files.draw_hdf5(values))
    (line,) = verification.verify("medium")
    assert line == f"{weights}: {weights.stat().st_size:,} bytes, intact by its arrays"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match=rf"^{weights}: not a complete HDF5 file"):
        list(verification.verify("medium"))


def test_the_folder_of_models_is_in_the_users_cache_unless_a_variable_names_it(monkeypatch, tmp_path):
    monkeypatch.delenv(models.HOME_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert models.home() == tmp_path / ".cache" / "elmo_tf"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert models.home() == tmp_path / "xdg" / "elmo_tf"
    monkeypatch.setenv(models.HOME_VARIABLE, "~/models")
    assert models.home() == tmp_path / "models"
    for name in (models.HOME_VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", dict().__getitem__)
    with pytest.raises(InputError, match=r"^ELMO_TF_HOME: not set, and there is no home folder"):
        models.home()


def test_a_mirrors_password_is_in_no_message(home, monkeypatch):
    monkeypatch.setenv(models.MIRROR_VARIABLE, "http://user:secret@127.0.0.1/elmo")
    message = r"^small: .*: not an .* without user name and password; .*127\.0\.0\.1"
    with pytest.raises(InputError, match=message) as caught:
        fetch()
    assert "secret" not in str(caught.value)


def test_a_wrong_size_and_a_wrong_checksum_are_reported_and_the_file_is_not_kept(server, home, pair):
    (path,) = (path for path in server.files if path.endswith("hdf5"))
    for content, message in (
        (pair[1][:-1], rf"expected {len(pair[1]):,} bytes, found {len(pair[1]) - 1:,}; try again"),
        (bytes(len(pair[1])), r"its SHA-256 is \w+, but should be \w+; the file was removed; try again"),
    ):
        server.files[path] = content
        with pytest.raises(InputError, match=f"^small: http.*: {message}"):
            fetch()
        assert left_in(home) == ["small/options.json"]


def test_a_page_in_place_of_a_file_without_checksum_is_reported_and_not_kept(server, home, pair):
    options, weights = models.find("pubmed").options, models.find("pubmed").weights
    page = b"<html>Log in to this network first</html>"
    server.files |= {f"/elmo/{options}": page, f"/elmo/{weights}": page}
    message = r"^pubmed: /.*options.json: not JSON: .*; try again, or copy the files of http"
    with pytest.raises(InputError, match=message):
        fetch("pubmed")
    assert left_in(home) == []
    server.files[f"/elmo/{options}"] = pair[0]
    with pytest.raises(InputError, match=r"^pubmed: /.*: not an HDF5 file; try again"):
        fetch("pubmed")
    assert left_in(home) == ["pubmed/options.json"]


def test_a_file_that_has_moved_is_reported_with_the_addresses_and_the_place_for_files_by_hand(server, home):
    server.statuses = [404]
    with pytest.raises(InputError) as caught:
        fetch()
    urls = models.find("small").urls
    assert str(caught.value) == (
        f"small: {urls['options.json']}: cannot be fetched (404 Not Found); try again, or copy the files of "
        f"{urls['options.json']} and {urls['weights.hdf5']} into {home}/small as options.json and weights.hdf5"
    )
    assert left_in(home) == []


def test_without_a_network_one_line_says_where_to_put_the_files_and_there_they_are_found(home, pair, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv(models.MIRROR_VARIABLE, f"http://127.0.0.1:{port}")
    with pytest.raises(InputError, match=rf"cannot be fetched .*refused.* copy the files .* into {home}/pubmed as "):
        fetch("pubmed")
    for name, content in zip((models.OPTIONS_FILE, models.WEIGHTS_FILE), pair, strict=True):
        (home / "pubmed" / name).write_bytes(content)
    assert [path.read_bytes() for path in fetch("pubmed")] == pair


def test_a_damaged_model_is_named_and_fetched_again_only_when_it_is_deleted(server, home, pair):
    weights = fetch().weights
    weights.write_bytes(bytes(len(pair[1])))
    message = rf"^small: the model is damaged: .*: its SHA-256 is .*; delete {home}/small and the next use"
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            fetch()
    assert len(server.ranges) == 2
    for path in weights.parent.iterdir():
        path.unlink()
    assert fetch().weights.read_bytes() == pair[1]
    (home / "small" / ".lock").unlink()
    fetch()
    assert not (home / "small" / ".lock").exists()  # nothing is written where the files are here


def test_a_model_is_fetched_once_by_one_of_two_and_a_cut_download_resumes(server, home, pair, capsys):
    def second_waits() -> None:
        until = time.monotonic() + 30
        while "waiting for" not in capsys.readouterr().err and time.monotonic() < until:
            time.sleep(0.01)

    # The requests: the options, the weights.
    server.cuts, server.before_cut = [len(pair[0]), 1000], second_waits
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(fetch) for _ in range(2)]
        assert futures[0].result() == futures[1].result() == fetch()
    assert [path.read_bytes() for path in fetch()] == pair
    assert server.ranges == [None, None, "bytes=1000-"]
    assert left_in(home) == ["small/options.json", "small/weights.hdf5"]


def test_a_folder_that_cannot_be_written_is_named_with_its_variable(server, home):
    home.write_text("a file")
    with pytest.raises(InputError, match=rf"^{home}/small: the folder cannot be written \(.*\); ELMO_TF_HOME names an"):
        fetch()
    assert server.ranges == []


def test_the_model_that_comes_with_the_package_is_what_its_row_says_and_a_missing_file_one_clear_line(
    home, tmp_path, monkeypatch
):
    row = models.find("english")
    options, weights = row.files()
    assert sum(array.size for array in published_files.read_hdf5(weights).values()) == row.parameters
    assert 2 * json.loads(options.read_text())["lstm"]["projection_dim"] == row.dim
    assert options.stat().st_size + weights.stat().st_size <= 20_000_000
    monkeypatch.setattr(models, "_PACKAGED", tmp_path)
    message = rf"^english: the model is damaged: {tmp_path}/english/weights.hdf5: no such file; install elmo_tf again$"
    with pytest.raises(InputError, match=message):
        fetch("english")
    assert not home.exists()


def test_the_command_lists_the_models_and_which_are_here(server, home, capsys):
    fetch()
    assert cli.main(["models", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == [model.name for model in models.MODELS]
    assert rows["english"]["license"] == "CC BY-SA 4.0"
    assert [rows[name]["here"] for name in ("small", "medium")] == ["yes", "no"]
    assert cli.main(["models"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["name", "weights"]
    assert len(lines) == len(models.MODELS) + 2
    assert max(map(len, lines)) <= 100
    (line,) = (line for line in lines if line.startswith("medium "))
    assert re.fullmatch(r"medium +28\.0 M +512 +\? +English +.*news +no", line)
