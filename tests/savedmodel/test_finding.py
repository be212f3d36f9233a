"""Names in the place of SavedModels: the model in the box, converted once, wherever a model is expected."""

import concurrent.futures
import pathlib
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import cli
from elmo_tf.errors import InputError
from elmo_tf.published import fetching, models
from elmo_tf.savedmodel import assets, conversion, embedding, finding, opening, verification, writing
from tests import checks
from tests.helpers import slow
from tests.published import published_files

BOOKS = models.find("books")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The home folder after two threads have asked for `books` at the same time."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        patch.setenv(fetching.HOME_VARIABLE, str(folder))
        first, second = pool.map(finding.find_version, ["books"] * 2)
        assert first == second == finding.savedmodel_of(BOOKS) / "1"
        yield folder


@pytest.mark.slow
def test_two_at_once_leave_one_savedmodel_with_its_provenance(home):
    assert sorted(path.name for path in (home / "books").iterdir()) == [".lock", finding.savedmodel_of(BOOKS).name]
    assert [path.name for path in finding.savedmodel_of(BOOKS).iterdir()] == ["1"]
    provenance = assets.read_provenance(finding.find_version("books"))
    assert provenance["model"] == "books"
    assert provenance["weights"]["sha256"] == BOOKS.sha256


@pytest.mark.slow
def test_a_name_will_do_wherever_a_savedmodel_is_expected(home, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(finding, "_convert", lambda *_: pytest.fail("converted already"))
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    model = elmo_tf.load("books")
    found = model.signatures["default"](strings=tf.constant(["the cat sat"]))
    layer = elmo_tf.ELMo("books", mix="average")
    np.testing.assert_allclose(layer([["the", "cat", "sat"]]), found["elmo"], **checks.TOLERANCE)
    assert embedding.find_model("books").path == opening.check("books") == finding.find_version("books")
    assert cli.main(["verify", "books"]) == 0
    (tmp_path / "text").write_text("the cat sat\na dog barked\n")
    query = ["--word", "cat", "--sentence", "the cat", "--count", "1"]
    assert cli.main(["neighbors", "--savedmodel", "books", "--text", str(tmp_path / "text"), *query]) == 0
    assert cli.main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("books ")).endswith("SavedModel")


@pytest.mark.parametrize(
    ("page", "shapes"),
    [
        ("README.md", ["(2, 6, 256)", "(2, 3, 6, 256)", "b'bank'"]),
        slow("docs/models.md", ["(2, 6, 256)"]),
        slow("docs/books-model.md", ["(1, 9, 256)"]),
    ],
)
def test_the_first_program_of_a_page_about_the_model_runs_as_it_stands(home, capsys, page, shapes):
    text = (pathlib.Path(__file__).parents[2] / page).read_text()
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {})
    assert capsys.readouterr().out.splitlines() == shapes


def test_the_model_knows_english(home):
    """A real model says what a random one cannot: which use of a word is meant."""
    model = elmo_tf.load("books")
    uses = ["She sat on the bank of the river .", "He swam to the other bank .", "The bank lends money to farmers ."]
    top = model(tf.constant(uses))["lstm_outputs2"].numpy()
    river, shore, money = (top[row, use.split().index("bank")] for row, use in enumerate(uses))
    assert cosine(river, shore) > cosine(river, money)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


@pytest.mark.slow
def test_import_takes_a_name_with_the_settings_of_an_export(home, tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(writing, "export", lambda *given, **settings: asked.append((given, settings)) or "exported")
    workdir = tmp_path / "workdir"
    command = ["import", "books", "--mix", "top", "--output", "models/mine", "--workdir", str(workdir)]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.split() == ["exported", str(workdir)]
    (((_, config, output), settings),) = asked
    assert (config.model.lstm.units, output) == (512, "models/mine")
    assert settings["provenance"]["model"] == "books"
    assert settings["mix"] == "top"


@pytest.mark.slow
def test_a_folder_with_a_model_comes_before_the_name(home, savedmodel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books").mkdir()
    assert finding.find_version("books") == finding.savedmodel_of(BOOKS) / "1"
    (tmp_path / "books" / "3").symlink_to(savedmodel.path)
    assert str(finding.find_version("books")) == "books/3"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bokks", "expected a folder with saved_model.pb, or one of the models books, small, .*, found none: bokks"),
        ("no/such", "expected a folder with saved_model.pb, found none: no/such"),
    ],
)
def test_what_is_neither_is_reported_with_the_names_if_it_could_be_one(given, message):
    with pytest.raises(InputError, match=f"^savedmodel: {message}$"):
        finding.find_version(given)
    with pytest.raises(InputError, match=f"^path: {message}$"):
        elmo_tf.load(given)


def test_what_the_converting_process_refuses_is_said_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv(fetching.HOME_VARIABLE, str(tmp_path))
    line = "weights: expected a whole HDF5 file, found no signature: w.hdf5"
    status = conversion.INPUT_ERROR
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), status, "", f"a note\n{line}\n")
    )
    message = "^name: expected an intact model pubmed: a whole HDF5 file, found no signature: w.hdf5; delete .*/pubmed"
    with pytest.raises(InputError, match=message):
        finding._convert(models.find("pubmed"), fetching.Files(tmp_path, tmp_path), tmp_path / "output")
    line = "memory: expected enough of it for this command, found too little memory: OOM"
    with pytest.raises(InputError, match=f"^{line}$"):
        finding._convert(models.find("pubmed"), fetching.Files(tmp_path, tmp_path), tmp_path / "output")


@pytest.mark.slow
def test_damaged_files_are_reported_by_the_process_that_converts_and_leave_no_savedmodel(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(fetching.HOME_VARIABLE, str(tmp_path))
    (tmp_path / "pubmed").mkdir()
    values = published_files.options()
    _, weights = published_files.write_pair(tmp_path / "pubmed", values, published_files.draw_hdf5(values))
    with h5py.File(weights, "a") as file:
        del file["char_embed"]
    message = (
        r"^savedmodel: expected an intact model pubmed: char_embed of shape \(261, 4\), found nothing of that name: "
        rf"{weights}; delete {tmp_path}/pubmed and the next use fetches it again$"
    )
    with pytest.raises(InputError, match=message):
        finding.find_version("pubmed")
    assert sorted(path.name for path in (tmp_path / "pubmed").iterdir()) == [".lock", "options.json", "weights.hdf5"]
    assert capsys.readouterr().err.startswith("converting the model pubmed to a SavedModel, once: ")


@pytest.fixture
def cached(savedmodel, tmp_path, monkeypatch) -> pathlib.Path:
    """The version's folder of a model in the cache."""
    monkeypatch.setenv(fetching.HOME_VARIABLE, str(tmp_path))
    return shutil.copytree(savedmodel.path, finding.savedmodel_of(BOOKS) / "1")


@pytest.mark.parametrize(
    "use",
    [opening.check, opening.open_savedmodel, embedding.find_model, lambda name: list(verification.verify(name))],
)
def test_the_error_about_a_damaged_model_of_the_cache_says_which_folder_to_delete(cached, use):
    (cached / "variables" / "variables.index").unlink()
    where = f"{cached}; delete {cached.parent} and the next use converts it again"
    message = f"^savedmodel: expected the file variables/variables.index, found none in {re.escape(where)}$"
    with pytest.raises(InputError, match=message):
        use("books")


def test_what_killed_conversions_left_is_removed_before_the_next(cached, monkeypatch):
    shutil.rmtree(cached)
    for left in (".unnumbered-17.incomplete-2a5f", "unnumbered-18"):
        (cached.parent / left).mkdir()
    seen = []
    monkeypatch.setattr(finding, "_convert", lambda *_: seen.extend(cached.parent.iterdir()))
    finding.converted(BOOKS)
    assert seen == []


def test_a_conversion_that_fails_otherwise_is_an_oserror_with_its_last_line(tmp_path, monkeypatch):
    monkeypatch.setenv(fetching.HOME_VARIABLE, str(tmp_path))
    monkeypatch.setattr(conversion, "__name__", "elmo_tf.savedmodel.no_such_module")
    with pytest.raises(OSError, match=r"cannot convert the model pubmed: .*no_such_module"):
        finding._convert(models.find("pubmed"), fetching.Files(tmp_path, tmp_path), tmp_path / "output")
