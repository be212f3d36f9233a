"""What `import elmo_tf` offers a program: names, hints, examples in docstrings, the way from records to vectors."""

import ast
import dataclasses
import doctest
import importlib
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import config
from elmo_tf.savedmodel import verification
from elmo_tf.workdir import checkpoints
from tests import checks
from tests.helpers import MICRO_CONFIG, ONE_LAYER, batch_char_ids, new_untrained, run_python


def test_a_type_checker_imports_each_name_from_where_it_is_loaded():
    tree = ast.parse(pathlib.Path(elmo_tf.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == {name: module for name, (module, _) in elmo_tf._NAMES.items()}
    assert sorted(seen) == sorted(elmo_tf.__all__)


def test_importing_elmo_tf_and_listing_its_names_imports_nothing_heavy():
    code = "import sys, elmo_tf; print(sorted(set(elmo_tf.__all__) - set(dir(elmo_tf)))); print(*sys.modules)"
    missing, modules = run_python("-c", code).stdout.splitlines()
    assert missing == "[]"
    packages = {name.partition(".")[0] for name in modules.split()}
    assert not packages & {"tensorflow", "keras", "numpy", "h5py", "google", "apache_beam"}
    assert [name for name in modules.split() if name.startswith("elmo_tf")] == ["elmo_tf"]


def test_importing_one_layer_registers_all_that_a_keras_file_may_have(monkeypatch):
    layers, imported, import_module = ("ELMo", "ScalarMix", "SequencePooling", "CRF"), [], importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: imported.append(name) or import_module(name))
    for layer in layers:
        imported.clear()
        elmo_tf.__getattr__(layer)
        assert {elmo_tf._NAMES[name][0] for name in layers} <= set(imported)
    assert {f"elmo_tf>{name}" for name in layers} <= keras.saving.get_custom_objects().keys()


def test_another_backend_of_keras_is_one_clear_error(workdir):
    torch = {"KERAS_BACKEND": "torch"}
    line = "KERAS_BACKEND: it is torch; set it to tensorflow before Keras is imported"
    code = "import elmo_tf; elmo_tf.preset('tiny')\ntry: elmo_tf.ELMo\nexcept elmo_tf.InputError as error: print(error)"
    assert run_python("-c", code, env=torch).stdout == f"{line}\n"
    for command in (["evaluate", "--workdir=a", "--data=b"], ["push", workdir.path, "hf://me/elmo", "--license=mit"]):
        done = run_python("-m", "elmo_tf.cli", *command, env=torch, check=False)
        assert (done.returncode, done.stderr) == (1, f"elmo-tf: error: {line}\n")


@pytest.mark.slow
def test_the_functions_compute_in_float32_under_any_dtype_policy_of_the_program(
    workdir, records, tmp_path, monkeypatch, dtype_policy
):
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    expected = elmo_tf.evaluate(workdir, records.path)
    dtype_policy("mixed_bfloat16")
    trained = elmo_tf.train(MICRO_CONFIG, records.path, tmp_path / "workdir", steps=3)
    assert elmo_tf.evaluate(workdir, records.path) == expected
    path = elmo_tf.export(workdir, tmp_path / "exported")
    dtype_policy("float32")
    checks.assert_all_close(
        checkpoints.restore(trained)[0].variables, checkpoints.restore(workdir)[0].variables, **checks.TOLERANCE
    )
    layers = elmo_tf.load(path).encode(["a cat"], "all")[0].vectors
    ids = batch_char_ids([[b"a", b"cat"]])
    np.testing.assert_allclose(layers[None], checkpoints.restore(workdir)[0](ids)[0], **checks.TOLERANCE)


pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def small_project(records, tmp_path, monkeypatch):
    """The current folder of a user who has records, trains a micro network, and exports it unverified."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("train", "heldout"):
        (tmp_path / "data" / name).symlink_to(records.path)
    monkeypatch.setitem(config.PRESETS, "tiny", dataclasses.replace(MICRO_CONFIG, model=ONE_LAYER))
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    return tmp_path


@pytest.mark.parametrize("name", ["BiLM", "ELMo", "InputError", "LanguageModel", "load", "train", "export"])
def test_the_examples_of_a_docstring_print_what_they_say(name, request):
    project = request.getfixturevalue("small_project") if name in ("LanguageModel", "train", "export") else None
    if name == "export":
        new_untrained(project / "runs" / "mine", ONE_LAYER)
    globs = {"elmo_tf": elmo_tf, "keras": keras, "tf": tf}
    (examples,) = doctest.DocTestFinder(recurse=False).find(getattr(elmo_tf, name), name, globs=globs)
    report: list[str] = []
    failed, attempted = doctest.DocTestRunner().run(examples, out=report.append)
    assert attempted > 0 and not failed, "".join(report)
