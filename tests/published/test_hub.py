"""Models on Hugging Face's hub, from and to a stand-in server; most commands run in a process of their own."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import h5py
import huggingface_hub
import numpy as np
import pytest

import elmo_tf
from elmo_tf import cli, push, sources
from elmo_tf.errors import InputError
from elmo_tf.published import hub, models
from elmo_tf.savedmodel import checksums
from tests import checks
from tests.helpers import flip, run_python
from tests.published import hub_server, published_files

ADDRESS = "hf://me/elmo"
LOAD = """
import sys, elmo_tf
print(elmo_tf.load(sys.argv[1]).encode(["the cat"])[0].vectors.tobytes().hex())
"""


@pytest.fixture
def server():
    with hub_server.serve() as running:
        yield running


@pytest.fixture
def environment(server, tmp_path) -> dict[str, str | None]:
    """The settings of a user without a token, whose hub is the stand-in."""
    settings = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1"}
    settings |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": None}
    return settings | dict.fromkeys(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"))


@pytest.fixture
def files(tmp_path) -> pathlib.Path:
    """A folder of published files that are split into characters."""
    (tmp_path / "mine").mkdir()
    values = published_files.options()
    options, _ = published_files.write_pair(tmp_path / "mine", values, published_files.draw_hdf5(values))
    options.write_text(json.dumps(values | {"tokenizer": "characters"}))
    return tmp_path / "mine"


def publish(server: hub_server.HubServer, folder: pathlib.Path, branch: str = "main", **extra: bytes) -> str:
    """Puts the files of a folder on the hub; returns the commit."""
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    repository = server.repositories.setdefault("me/elmo", hub_server.Repository())
    return repository.commit(branch, contents | extra)


def command(environment: dict, *arguments: object) -> subprocess.CompletedProcess:
    return run_python("-m", "elmo_tf.cli", *arguments, env=environment, check=False)


def load(environment: dict, address: str = ADDRESS) -> np.ndarray:
    done = run_python("-c", LOAD, address, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(bytes.fromhex(done.stdout), np.float32)


def problem(environment: dict, address: str = ADDRESS) -> str:
    """Returns the one line with which a command fails at an address."""
    done = command(environment, "verify", "--model", address)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("elmo-tf: "))
    return line.removeprefix("elmo-tf: error: ")


def expected(folder: pathlib.Path) -> np.ndarray:
    return elmo_tf.load(folder).encode(["the cat"])[0].vectors.ravel()


def test_an_address_is_fetched_once_by_name_and_used_offline_afterwards(server, environment, files):
    commit = publish(server, files, **{"pytorch_model.bin": b"pickle", "elmo.py": b"code", "variables/x": b"x"})
    np.testing.assert_array_equal(load(environment), expected(files))
    fetched = {request.rpartition("/")[2] for request in server.requests if request.startswith("GET /me/")}
    assert fetched == {"options.json", "weights.hdf5"}
    server.requests.clear()
    np.testing.assert_array_equal(load(environment | {"HF_HUB_OFFLINE": "1"}), expected(files))
    np.testing.assert_array_equal(load(environment, f"{ADDRESS}@{commit}"), expected(files))
    assert not [request for request in server.requests if "/me/elmo" in request]


def test_a_revision_is_another_model_and_the_name_of_the_source_has_its_commit(server, environment, files, tmp_path):
    publish(server, files)
    other = shutil.copytree(files, tmp_path / "other")
    values = published_files.options()
    values["lstm"]["cell_clip"] = 0.1
    (other / models.OPTIONS_FILE).write_text(json.dumps(values))
    commit = publish(server, other, "dev/1")
    assert not np.array_equal(expected(files), expected(other)[: expected(files).size])
    np.testing.assert_array_equal(load(environment, f"{ADDRESS}@dev/1"), expected(other))
    code = f"from elmo_tf import sources; print(sources.find('{ADDRESS}@dev/1').name)"
    assert run_python("-c", code, env=environment).stdout == f"{ADDRESS}@{commit}\n"
    assert problem(environment, f"{ADDRESS}@old") == f"{ADDRESS}@old: the model has no such revision"


def test_a_private_model_needs_a_token_and_looks_like_none_without_it(server, environment, files):
    publish(server, files)
    server.repositories["me/elmo"].private = True
    refused = f"not found at {server.url}, or not for you; if it is private or gated, set HF_TOKEN"
    assert problem(environment) == f"{ADDRESS}: {refused}"
    assert problem(environment, "hf://me/none") == f"hf://me/none: {refused}"
    np.testing.assert_array_equal(load(environment | {"HF_TOKEN": hub_server.TOKEN}), expected(files))


def test_what_is_no_address_and_no_model_is_said(server, environment, tmp_path):
    for address in ("hf://elmo", "hf://me/elmo/", "hf://me/elmo@", "hf://me/../elmo", "hf://datasets/me/elmo"):
        with pytest.raises(InputError, match=f"^{address}: not an address on the hub; write hf://owner/name or"):
            sources.find(address)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")  # of transformers, not of a workdir
    commit = publish(server, tmp_path / "empty")
    assert problem(environment) == (
        f"{ADDRESS}@{commit}: no model of elmo_tf: neither options.json and weights.hdf5 nor a SavedModel"
    )


def test_a_hub_that_is_absent_or_out_of_order_is_said_and_the_cache_serves(server, environment, files):
    publish(server, files)
    cache = f"{ADDRESS}: not, or not completely, in the cache {environment['HF_HOME']}/hub, and"
    assert problem(environment | {"HF_HUB_OFFLINE": "1"}) == f"{cache} HF_HUB_OFFLINE is set"
    server.status = 418
    assert problem(environment) == f"{cache} {server.url} answers 418 I'm a Teapot: out of order"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    unreachable = environment | {"HF_ENDPOINT": f"http://127.0.0.1:{port}"}
    assert problem(unreachable).startswith(f"{cache} http://127.0.0.1:{port}: ")
    server.status = 0
    load(environment)
    server.status = 418
    np.testing.assert_array_equal(load(environment), expected(files))
    np.testing.assert_array_equal(load(unreachable), expected(files))


def test_a_broken_connection_is_made_again(server, environment, files):
    publish(server, files)
    server.cuts = [1000]
    np.testing.assert_array_equal(load(environment), expected(files))
    assert server.downloads == 2


def test_links_out_of_the_cache_and_damaged_blobs_are_refused(server, environment, files, tmp_path):
    commit = publish(server, files)
    load(environment)
    snapshot = tmp_path / "hub" / "hub" / "models--me--elmo" / "snapshots" / commit
    weights, options = snapshot / models.WEIGHTS_FILE, snapshot / models.OPTIONS_FILE
    assert weights.is_symlink()
    flip(weights.resolve())
    assert problem(environment).startswith(f"{weights}: its SHA-256 is ")
    flip(weights.resolve())
    assert command(environment, "verify", "--model", ADDRESS).returncode == 0
    options.unlink()
    options.symlink_to(files / models.OPTIONS_FILE)
    assert problem(environment) == f"{options}: a link out of the hub's cache, which is not followed"


FIND = """
import sys
from elmo_tf import sources
source = sources.find(sys.argv[1])
print(type(source).__name__, source.name, source.sha256(), "tensorflow" in sys.modules)
"""


def test_a_savedmodel_on_the_hub_is_a_source(server, environment, savedmodel):
    commit = publish(server, savedmodel.path, **{"README.md": b"a card of its own", "keras_metadata.pb": b"code"})
    found = run_python("-c", FIND, ADDRESS, env=environment).stdout.split()
    assert found == ["SavedModel", f"{ADDRESS}@{commit}", sources.find(savedmodel.path).sha256(), "False"]


@pytest.mark.slow
def test_a_savedmodel_on_the_hub_is_used_and_verified_and_not_imported(server, environment, savedmodel, tmp_path):
    publish(server, savedmodel.path)
    (encoded,) = elmo_tf.load(savedmodel.path).encode(["the cat"])  # with its mix
    np.testing.assert_array_equal(load(environment), encoded.vectors.ravel())
    assert "all its signatures return" in command(environment, "verify", "--model", ADDRESS).stdout
    done = command(environment, "import", ADDRESS, "--output", tmp_path / "new")
    assert done.returncode == 1
    assert done.stderr.endswith("not published files; use it as it is, or export it\n")


@pytest.mark.slow
def test_published_files_of_the_hub_are_imported_and_embedded(server, environment, files, tmp_path):
    commit = publish(server, files)
    assert command(environment, "import", ADDRESS, "--output", tmp_path / "new").returncode == 0
    assert command(environment, "import", files, "--workdir", tmp_path / "workdir").returncode == 0
    assert sources.find(tmp_path / "workdir").tokenizer == "characters"
    provenance = json.loads((tmp_path / "new" / "1" / "assets" / "provenance.json").read_text())
    assert (provenance["model"], provenance["tokenizer"]) == (f"{ADDRESS}@{commit}", "characters")
    (tmp_path / "text").write_text("the cat\n")
    options = ["--input", tmp_path / "text", "--output", tmp_path / "vectors.hdf5", "--layers", "average"]
    done = command(environment, "embed", "--model", ADDRESS, *options)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "vectors.hdf5") as file:
        np.testing.assert_allclose(file["0"][()].ravel(), expected(files), **checks.TOLERANCE)


def push_to(environment: dict, folder: object, *options: str, address: str = ADDRESS) -> subprocess.CompletedProcess:
    environment = environment | {"HF_TOKEN": hub_server.TOKEN}
    return command(environment, "push", folder, address, "--license", "mit", *options)


def test_push_writes_large_files_and_a_card_and_the_address_gives_the_same_vectors(server, environment, files):
    done = push_to(environment, files, "--language", "de")
    assert done.returncode == 0, done.stderr
    repository = server.repositories["me/elmo"]
    assert done.stdout == f"{ADDRESS}@{repository.branches['main']}\n"
    contents = repository.commits[repository.branches["main"]]
    assert contents.keys() == {".gitattributes", "README.md", "options.json", "weights.hdf5"}
    assert contents["weights.hdf5"] == (files / "weights.hdf5").read_bytes() in server.uploads.values()
    shown = done.stderr.index(f"weights.hdf5: {len(contents['weights.hdf5']):,} bytes")
    assert shown < done.stderr.index(f"pushing these files to {ADDRESS}\n")
    written = huggingface_hub.ModelCard(contents["README.md"].decode())
    assert (written.data.license, written.data.language, written.data.library_name) == ("mit", "de", "elmo_tf")
    assert f'elmo_tf.load("{ADDRESS}")' in written.text and f"elmo-tf import {ADDRESS} --output" in written.text
    np.testing.assert_array_equal(load(environment), expected(files))


def test_push_replaces_its_files_and_no_others_and_takes_a_branch(server, environment, files):
    publish(server, files, **{"softmax.hdf5": b"old", "vocab.txt": b"old", "notes.txt": b"mine"})
    assert push_to(environment, files, "--revision", "dev").returncode == 0
    repository = server.repositories["me/elmo"]
    main, dev = (repository.commits[repository.branches[branch]] for branch in ("main", "dev"))
    assert "softmax.hdf5" in main
    assert dev.keys() == {"README.md", "options.json", "weights.hdf5", "notes.txt"}


def test_push_makes_a_private_model_and_does_not_push_private_files_to_a_public_one(server, environment, files):
    assert push_to(environment, files, "--private", address="hf://me/new").returncode == 0
    assert server.repositories["me/new"].private
    publish(server, files)
    before = dict(server.repositories["me/elmo"].branches)
    done = push_to(environment, files, "--private")
    assert done.returncode == 1
    assert done.stderr.endswith(
        f"{ADDRESS}: this model exists and is public; leave out --private, or choose another name\n"
    )
    assert server.repositories["me/elmo"].branches == before


def test_a_dry_run_writes_a_folder_whose_card_can_be_edited_and_pushed(server, environment, files, tmp_path):
    folder = tmp_path / "dry"
    done = command(environment, "push", files, ADDRESS, "--license", "mit", "--dry-run", folder)
    assert (done.returncode, done.stdout, server.requests) == (0, f"{folder}\n", [])
    card = folder / "README.md"
    card.write_text(card.read_text().replace("## Limits\n", "## Text\n\n[Novels](novels.md).\n\n## Limits\n"))
    assert push_to(environment, folder, address="hf://me/other").returncode == 0
    repository = server.repositories["me/other"]
    text = repository.commits[repository.branches["main"]]["README.md"].decode()
    assert "## Text\n\nNovels.\n" in text  # the link would lead nowhere
    assert text.count("## Use\n") == 1 and 'load("hf://me/other")' in text and ADDRESS not in text


def test_push_without_a_license_is_a_usage_error_and_without_a_token_one_line(server, environment, files, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["push", "english", ADDRESS])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("required: --license\n")
    assert cli.main(["push", "english", ADDRESS, "--license", "mit"]) == 1
    err = capsys.readouterr().err
    assert re.search(r"--license: expected cc-by-sa-4.0, as \S+english/README.md says, found mit\n$", err)
    done = command(environment, "push", files, ADDRESS, "--license", "mit")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"elmo-tf: error: {ADDRESS}: {server.url} answers 401 Unauthorized: Invalid username or password."
    )
    assert not server.repositories


def test_push_to_a_hub_that_cannot_be_reached_is_one_line(server, environment, files):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    done = push_to(environment | {"HF_ENDPOINT": url}, files)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"elmo-tf: error: {ADDRESS}: {url}: ")


def test_a_workdir_is_pushed_with_its_softmax_tokenizer_and_what_it_knows_of_its_training(workdir, tmp_path):
    folder = push.write_folder(sources.find(workdir), tmp_path / "folder", ADDRESS, "mit", "en")
    assert sorted(os.listdir(folder)) == sorted(push.FILES)
    text = (folder / "README.md").read_text()
    assert "| training | 3 steps of 2 streams of 5 tokens: 30 tokens |" in text
    assert f"| softmax | {len(workdir.vocabulary)} words |" in text
    model, pushed = elmo_tf.load(workdir), elmo_tf.load(folder)
    assert pushed.source.tokenizer == model.source.tokenizer
    np.testing.assert_allclose(
        pushed.encode(["a cat"])[0].vectors, model.encode(["a cat"])[0].vectors, **checks.TOLERANCE
    )
    assert pushed.score(["a cat"])[0].total == pytest.approx(model.score(["a cat"])[0].total, abs=1e-4)


def test_a_savedmodel_is_pushed_with_its_card_which_has_its_mix(savedmodel, tmp_path):
    copy = shutil.copytree(savedmodel.path, tmp_path / "copy")
    card = copy / "README.md"
    assert 'elmo_tf.load("micro")' in card.read_text()
    card.write_text(card.read_text() + "\nAn edited card.\n")
    checksums.check(copy, thorough=True)
    folder = push.write_folder(sources.find(copy), tmp_path / "folder", ADDRESS, "mit")
    text = (folder / "README.md").read_text()
    assert "| mix of the layers | `--mix=0.3,-0.5,1 --gamma=1.7` |" in text and "An edited card." in text
    layers = [elmo_tf.load(path).encode(["a cat"], "all")[0].vectors for path in (copy, folder)]
    np.testing.assert_allclose(*layers, **checks.TOLERANCE)


def test_a_card_as_an_editor_on_another_system_writes_it_has_one_section_about_its_use(files, tmp_path):
    lines = ["---", "license: mit", "## a comment of the front matter", "---", "# Mine", "", "## Use", "", "old", ""]
    (files / "README.md").write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, "## Limits", ""]).encode())
    folder = push.write_folder(sources.find(files), tmp_path / "folder", ADDRESS, "mit")
    text = (folder / "README.md").read_text()
    assert text.startswith("---\nlicense: mit\n---\n# Mine\n\n## Use\n\n```python\n")
    assert text.count("## ") == 2 and "old" not in text and text.endswith("## Limits\n")


def test_a_cache_that_cannot_be_written_is_named_and_not_the_hub(server, environment, files, tmp_path):
    publish(server, files)
    (tmp_path / "file").touch()
    assert problem(environment | {"HF_HOME": str(tmp_path / "file")}).startswith(f"{ADDRESS}: {tmp_path}/file/")


def test_the_card_of_english_keeps_its_credits_on_the_hub(tmp_path):
    folder = push.write_folder(sources.find("english"), tmp_path / "folder", ADDRESS, "cc-by-sa-4.0")
    card = huggingface_hub.ModelCard.load(folder / "README.md")
    assert "Project Gutenberg" in card.text and "](../" not in card.text
    assert (card.data.license, card.data.language, card.data.pipeline_tag) == (
        "cc-by-sa-4.0",
        "en",
        "feature-extraction",
    )
    assert {result.dataset_name for result in card.data.eval_results} >= {"UD English EWT 2, test"}
    pushed = elmo_tf.load(folder)
    assert pushed.source.tokenizer == "penn"
    for name, values in sources.find("english").weights().items():
        np.testing.assert_array_equal(pushed.source.weights()[name], values)
    assert (folder / "weights.hdf5").stat().st_size < 1.2 * models.find("english").size  # in float16, too
    assert pushed.fill("He [MASK] to London.", 1)[0].token == "went"


def test_the_errors_of_the_library_do_not_hide_defects():
    with pytest.raises(ZeroDivisionError), hub._explained(ADDRESS):
        print(1 / 0)
