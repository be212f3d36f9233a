"""The examples in docstrings, and the program of the page about Python; those that train make a micro network."""

import doctest
import shutil

import keras
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import config
from elmo_tf.savedmodel import verification
from tests.helpers import MICRO_CONFIG
from tests.test_pages import blocks, run

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def small_project(records, tmp_path, monkeypatch):
    """The current folder of a user who has records, trains a micro network, and exports it unverified."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("train", "heldout"):
        (tmp_path / "data" / name).symlink_to(records.path)
    monkeypatch.setitem(config.PRESETS, "tiny", MICRO_CONFIG)
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    return tmp_path


def assert_examples_print_what_they_say(name: str) -> None:
    (examples,) = doctest.DocTestFinder(recurse=False).find(
        getattr(elmo_tf, name), name, globs={"elmo_tf": elmo_tf, "keras": keras, "tf": tf}
    )
    report: list[str] = []
    failed, attempted = doctest.DocTestRunner().run(examples, out=report.append)
    assert attempted > 0 and not failed, "".join(report)


@pytest.mark.parametrize("name", ["BiLM", "ELMo", "load"])
def test_the_examples_with_a_model_print_what_they_say(name):
    assert_examples_print_what_they_say(name)


@pytest.mark.parametrize("name", ["train", "export"])
def test_the_examples_with_a_workdir_print_what_they_say(name, small_project, workdir):
    if name == "export":
        shutil.copytree(workdir.path, small_project / "runs" / "mine")
    assert_examples_print_what_they_say(name)


@pytest.mark.slow  # the examples of `train`, `export` and `load` are its parts
def test_the_program_of_the_page_about_python_runs(small_project):
    program, *_ = blocks("docs/python.md", "python")
    assert run(program).vectors.shape == (1, 16)
    assert (small_project / "savedmodels" / "mine" / "1").is_dir()
