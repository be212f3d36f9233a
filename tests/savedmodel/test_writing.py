"""What an export writes, where, and that it is whole or not there at all."""

import json
import os
import resource
import shutil

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import __version__
from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.savedmodel import verification, writing
from elmo_tf.savedmodel.stored_weights import StoredWeights
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG, ONE_LAYER, batch_char_ids
from tests.savedmodel.calls import SAME, TEXT, WORDS, embed


def test_assets_hold_the_configuration_and_where_the_model_comes_from(savedmodel):
    assets = {path.name: json.loads(path.read_text("utf-8")) for path in (savedmodel.path / "assets").iterdir()}
    assert config_lib.from_dict(assets.pop("config.json")) == MICRO_CONFIG
    provenance = {"elmo_tf": __version__, "tokenizer": "whitespace", "vocabulary": {"size": 3}}
    assert assets == {"provenance.json": provenance}


@pytest.mark.slow
def test_the_first_version_is_1_and_the_next_leaves_those_there_as_they_are(savedmodel, tmp_path):
    assert savedmodel.path.name == "1"
    output = tmp_path / "micro"
    first = shutil.copytree(savedmodel.path, output / "9")
    (output / "README.md").write_text("not a version")
    contents = {path: path.read_bytes() for path in first.rglob("*") if path.is_file()}
    further = checks.randomize(BiLM(MICRO), scale=0.4, seed=1)
    assert checks.export_unverified(further, MICRO_CONFIG, output) == output / "10"
    assert sorted(os.listdir(output)) == ["10", "9", "README.md"]
    assert {path: path.read_bytes() for path in first.rglob("*") if path.is_file()} == contents
    further_layers = embed(tf.saved_model.load(str(output / "10")), TEXT)
    np.testing.assert_allclose(further_layers["layers"], further(batch_char_ids(WORDS))[0], **SAME)
    # Without a mix, `elmo` is the average.
    np.testing.assert_allclose(further_layers["elmo"], further_layers["layers"].mean(1), **checks.TOLERANCE)
    assert sorted(os.listdir(output / "10" / "assets")) == ["config.json", "provenance.json"]


def corrupt(_: tf.train.Checkpoint, folder: str) -> None:
    """Damages what was written."""
    data = os.path.join(folder, "variables", "variables.data-00000-of-00001")
    with open(data, "r+b") as file:
        file.seek(-400, os.SEEK_END)
        file.write(bytes(300))


def differ(root: tf.train.Checkpoint, _: str) -> None:
    """Makes the object another one than was written."""
    # Every variable but those of the mix.
    for variable in root.variables[2:]:
        variable.assign(variable + 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "message"), [(corrupt, ""), (differ, "output 'lstm_outputs1' differs")])
def test_a_model_that_fails_its_verification_leaves_nothing_behind(tmp_path, monkeypatch, damage, message):
    bilm = checks.randomize(BiLM(MICRO), scale=0.4)
    real = tf.saved_model.save

    def save(root, folder, **options):
        real(root, folder, **options)
        assert os.listdir(tmp_path) == ["new"]
        damage(root, folder)

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(verification.VerificationError, match=rf"(?s)failed its verification.*{message}"):
        writing.export(bilm, MICRO_CONFIG, tmp_path / "new" / "micro")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        ("file", {}, r"^\S+/file: a file, not a folder for the model's versions$"),
        ("new", {"mix": [0.0, 1.0]}, r"^mix: expected average, .* 3 finite numbers, .*, found \[0.0, 1.0\]$"),
        ("new", {"gamma": float("nan")}, r"^gamma: expected a finite number, found nan$"),
        ("new", {"gamma": 1e39}, r"^gamma: expected a finite number, found 1e\+39$"),
        ("new", {"tokenizer": "Unicode"}, r"^tokenizer: expected one of whitespace, .*, found 'Unicode'$"),
        ("file/new", {}, r"^\S+/file/new/\S+: the folder cannot be made \(Not a directory\)$"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_leaves_nothing_behind(tmp_path, output, options, message):
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match=message):
        writing.export(BiLM(MICRO), MICRO_CONFIG, tmp_path / output, **options)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "text"


def test_a_version_is_not_a_folder_for_versions(savedmodel):
    with pytest.raises(InputError, match=f"^{savedmodel.path}: this is a version of a model"):
        writing.export(savedmodel.bilm, MICRO_CONFIG, savedmodel.path)


def test_a_full_disk_is_an_error_and_leaves_nothing_behind(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The largest size of a file, smaller than the graph's.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"^cannot write the SavedModel: .*saved_model.pb"):
            writing.export(BiLM(ONE_LAYER), MICRO_CONFIG, tmp_path / "micro")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


def test_saving_leaves_the_networks_variables_trainable(savedmodel):
    assert all(variable.value.trainable for variable in savedmodel.bilm.trainable_variables)


def test_the_softmax_is_stored_only_if_it_is_asked_for():
    bilm = BiLM(MICRO, 7)
    assert not any(variable.shape[:1] == (7,) for variable in StoredWeights(bilm).by_name.values())
    assert {(7, bilm.softmax.kernel.shape[1]), (7,)} <= {
        tuple(variable.shape) for variable in StoredWeights(bilm, bilm.softmax).by_name.values()
    }


def test_a_number_that_another_export_takes_meanwhile_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    numbers = iter([1, 1, 2])  # the other export takes number 1 just before the folder is renamed
    monkeypatch.setattr(writing, "_next_version", lambda _: next(numbers))

    def write(folder):
        (folder / "file").write_text("mine")
        (tmp_path / "1").mkdir()
        (tmp_path / "1" / "file").write_text("the other's")

    assert writing.new_version(tmp_path, write) == tmp_path / "2"
    contents = {name: (tmp_path / name / "file").read_text() for name in os.listdir(tmp_path)}
    assert contents == {"1": "the other's", "2": "mine"}
