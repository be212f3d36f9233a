"""The examples as a user starts them, on a few sentences, and the models that they save."""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.annotated.columns import Tagged
from elmo_tf.probes import learned_weights

ROOT = pathlib.Path(__file__).parents[2]
ENTITIES = [
    "anna/B-PER sat/O in/O new/B-LOC york/I-LOC",
    "new/B-LOC york/I-LOC sleeps/O",
    "the/O cat/O and/O anna/B-PER smith/I-PER",
    "boris/B-PER sat/O there/O",
] * 24


def start(example: str, *arguments: str | os.PathLike) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, ROOT / "examples" / example, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def run(example: str, *arguments: str | os.PathLike) -> tuple[list[str], dict]:
    """Runs an example; returns its lines and the JSON of the last one."""
    done = start(example, *arguments)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines, json.loads(lines[-1])


def entities(folder: pathlib.Path) -> list[str | os.PathLike]:
    """Writes the sentences to a file; returns the tagger's options, which train, choose and test on them."""
    rows = ["".join(f"{word.replace('/', ' ')}\n" for word in sentence.split()) for sentence in ENTITIES]
    (folder / "data").write_text("\n".join(rows))
    return [part for name in ("--train", "--dev", "--test") for part in (name, folder / "data")]


@pytest.mark.slow
def test_the_tagger_has_the_mix_that_was_asked_for(savedmodel, tmp_path):
    options = ["--mix", "top", "--epochs", "1", "--units", "2", "--output-mix", "--save", tmp_path / "saved"]
    _, found = run("ner_tagger.py", "--elmo", savedmodel.path, *entities(tmp_path), *options, "--fraction", "0.25")
    assert found["train_sentences"] == 24
    assert list(found["f1"]) == list(found["mean_f1"]) == ["without ELMo", "ELMo top"]
    mixes = learned_weights.read(tmp_path / "saved" / "top_0.keras")
    assert [mix.weights for mix in mixes] == [[0, 0, 1]] * 2


def load(example: str) -> types.ModuleType:
    """Returns an example as a module."""
    spec = importlib.util.spec_from_file_location(example, ROOT / "examples" / f"{example}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def glove(tmp_path_factory):
    """A file of 5,000 word vectors: as text in a configuration it would be some 500 kB."""
    path = tmp_path_factory.mktemp("glove") / "vectors.txt"
    random = np.random.default_rng(0)
    path.write_text("".join(f"word{n} {' '.join(f'{x:.6f}' for x in random.normal(size=10))}\n" for n in range(5000)))
    return path


def built_models(savedmodel, glove) -> dict[str, keras.Model]:
    """Returns an untrained model of each example."""
    arguments = argparse.Namespace(elmo=savedmodel.path, glove=glove, units=2, output_mix=True, classes=["a", "b"])
    tagger = load("ner_tagger").build([Tagged(["word1", "x"], ["O", "B-X"])], "learned", arguments)
    classifier, _ = load("sentence_classifier").build([(["word1", "x"], 0)], "learned", arguments)
    return {"tagger": keras.Model(tagger.inputs, tagger.outputs), "classifier": classifier}


def test_word_vectors_are_saved_as_weights_and_not_as_text(savedmodel, glove, tmp_path):
    inputs = [tf.constant([["word7", "x"]]), tf.constant([[9, 1]])]
    for name, model in built_models(savedmodel, glove).items():
        (table,) = (one for one in model.weights if one.shape == (5002, 10))
        np.testing.assert_allclose(table.numpy()[9], np.loadtxt(glove, usecols=range(1, 11), skiprows=7, max_rows=1))
        model.save(tmp_path / f"{name}.keras")
        with zipfile.ZipFile(tmp_path / f"{name}.keras") as archive:
            assert archive.getinfo("config.json").file_size < 50_000
        loaded = keras.models.load_model(tmp_path / f"{name}.keras")
        np.testing.assert_array_equal(loaded(inputs), model(inputs), err_msg=name)


@pytest.mark.slow
def test_the_tagger_learns_entities_without_and_with_elmo_at_input_and_output(savedmodel, tmp_path):
    (tmp_path / "glove").write_text("anna 1 0 0\nboris 0.9 0 0\nnew 0 1 0\nyork 0 0 1\n")
    options = [
        "--epochs",
        "25",
        "--units",
        "8",
        "--output-mix",
        "--glove",
        tmp_path / "glove",
        "--save",
        tmp_path / "saved",
    ]
    lines, found = run("ner_tagger.py", "--elmo", savedmodel.path, *entities(tmp_path), *options, "--fraction", "0.75")
    assert found["train_sentences"] == 72
    assert found["f1"].keys() == found["mean_f1"].keys() == {"without ELMo", "ELMo learned"}
    assert found["mean_f1"]["without ELMo"] > 0.5
    # Random vectors do not help.
    assert found["mean_f1"]["ELMo learned"] > 0.1
    assert f"mean F1, ELMo learned  {found['mean_f1']['ELMo learned']:.4f}" in lines
    assert (tmp_path / "saved" / "learned_0.keras").exists()


@pytest.mark.slow
def test_the_classifier_learns_classes_without_and_with_elmo(savedmodel, tmp_path):
    for name, word in (("good", "fine"), ("bad", "poor")):
        lines = [f"a {word} film of {number}" for number in range(200)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    classes = [part for name in ("good", "bad") for part in ("--class", f"{name}={tmp_path / name}")]
    options = ["--epochs", "3", "--units", "8", "--mix", "top", "--save", tmp_path / "saved"]
    lines, found = run("sentence_classifier.py", "--elmo", savedmodel.path, *classes, *options)
    assert found["train_sentences"] == 320
    assert list(found["accuracy"]) == list(found["mean_accuracy"]) == ["without ELMo", "ELMo top"]
    assert min(found["mean_accuracy"].values()) > 0.5
    assert f"mean accuracy, ELMo top      {found['mean_accuracy']['ELMo top']:.4f}" in lines
    (mix,) = learned_weights.read(tmp_path / "saved" / "top_0.keras")
    assert mix.weights == [0, 0, 1]


@pytest.mark.slow
def test_the_classifier_refuses_a_file_that_is_not_utf_8(savedmodel, tmp_path):
    (tmp_path / "good").write_bytes("café\n".encode("latin-1") * 20)
    classes = [part for name in ("good", "bad") for part in ("--class", f"{name}={tmp_path / 'good'}")]
    done = start("sentence_classifier.py", "--elmo", savedmodel.path, *classes)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("sentence_classifier.py: error: --class: expected UTF-8, found")
