"""Opening an exported model: intact ones open; lost, damaged and foreign files are named."""

import json
import os

import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import sources
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import assets, checksums, contract, stored_weights, verification
from tests.helpers import MICRO, MICRO_CONFIG, flip

FILES = [
    "assets/config.json",
    "assets/provenance.json",
    "fingerprint.pb",
    "saved_model.pb",
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
]


def test_the_list_names_every_file_with_its_size_and_sha256(tmp_path, savedmodel):
    listed = checksums.check(savedmodel.path)
    assert set(FILES) <= set(listed)
    (tmp_path / "saved_model.pb").write_bytes(b"abc")
    checksums.write(tmp_path)
    # FIPS 180-4, its first example.
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert checksums.check(tmp_path) == {"saved_model.pb": checksums.Listed(3, digest)}


@pytest.mark.parametrize("name", [*FILES, contract.CHECKSUMS_FILE])
def test_a_lost_file_is_named(copy, name):
    (copy / name).unlink()
    problem = "no model at this path" if name == "saved_model.pb" else f"{name} is missing"
    if name == contract.CHECKSUMS_FILE:
        problem = f"not an export of elmo-tf: it has no {name}"
    with pytest.raises(InputError, match=rf"^{copy}: {problem}"):
        elmo_tf.load(copy)


def test_a_list_does_not_lead_out_of_its_folder(copy):
    outside = copy.parent / "outside"
    outside.write_bytes(b"abc")
    path = copy / contract.CHECKSUMS_FILE
    listed = json.loads(path.read_text()) | {"../outside": {"bytes": 3, "sha256": ""}}
    path.write_text(json.dumps(listed))
    with pytest.raises(InputError, match=rf"^{copy}: \.\./outside is missing$"):
        checksums.check(copy, thorough=True)


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_one_other_bit_is_named_on_request_and_one_of_another_size_without_being_read(copy, name):
    flip(copy / name)
    with pytest.raises(InputError, match=rf"^{copy}/{name}: damaged: its SHA-256 is not that of "):
        checksums.check(copy, thorough=True)
    size = (copy / name).stat().st_size
    os.truncate(copy / name, size - 1)
    with pytest.raises(InputError, match=f"^{copy}/{name}: damaged: {size - 1:,} bytes, not {size:,}$"):
        elmo_tf.load(copy)


def test_an_unknown_file_is_named_by_verify_and_does_not_matter_otherwise(copy):
    (copy / "assets" / "more.txt").touch()
    with pytest.raises(InputError, match=r"assets/more.txt is not listed in "):
        list(verification.verify(copy))
    assert elmo_tf.load(copy, engine="numpy").encode(["a"])[0].tokens == ["a"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError("none"), "^none$"),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), "^OOM"),
        (ValueError("a\n  b"), "^/.*: the SavedModel is damaged: a b$"),
    ],
)
def test_what_tensorflow_says_of_damage_is_one_line_and_too_little_memory_is_none(
    savedmodel, monkeypatch, error, message
):
    def load(_):
        raise error

    monkeypatch.setattr(tf.train, "load_checkpoint", load)
    with pytest.raises(InputError if type(error) is ValueError else type(error), match=message):
        elmo_tf.load(savedmodel.path)


# tests/test_config.py and tests/files/test_json_file.py show other wrong values.
DAMAGED = [
    (contract.CHECKSUMS_FILE, '{"a": {"bytes": "3", "sha256": "x"}}', r"\[...\].bytes to be int, found another value"),
    (contract.CONFIG_FILE, "{}", "no key model"),
    (contract.CONFIG_FILE, '{"model": {"lstm": {"units": "24"}}}', "model.lstm.units: expected int, found "),
    (contract.PROVENANCE_FILE, "{}", "no key tokenizer"),
    (contract.PROVENANCE_FILE, '{"tokenizer": "words"}', "tokenizer to be .*, found "),
]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGED)
def test_a_damaged_list_configuration_or_provenance_is_named(copy, name, content, message):
    (copy / name).write_text(content)
    if name != contract.CHECKSUMS_FILE:
        checksums.write(copy)
    with pytest.raises(InputError, match=rf"^{copy}/{name}: .*{message}"):
        sources.find(copy)


def test_an_exported_task_is_named_as_what_it_is(copy):
    (copy / contract.CONFIG_FILE).unlink()
    (copy / contract.SYSTEM_FILE).write_text("{}")
    checksums.write(copy)
    with pytest.raises(InputError, match=rf"^{copy}: an export of `elmo-tf task`; use tf.saved_model.load and its "):
        elmo_tf.load(copy)
    with pytest.raises(InputError, match=rf"^{copy}: not a workdir of elmo-tf train: it has no config.json$"):
        elmo_tf.export(copy, copy.parent / "other")


@pytest.mark.parametrize("train", ['{"optimizer": "later"}', '{"unknown": 1}', "3"])
def test_training_settings_of_a_later_version_are_no_obstacle(copy, train):
    config = json.loads((copy / "assets" / "config.json").read_text())
    (copy / "assets" / "config.json").write_text(json.dumps(config | {"train": json.loads(train)}))
    checksums.write(copy)
    assert assets.read_config(copy) == MICRO_CONFIG.model


def test_an_export_whose_lstms_have_another_layout_is_to_be_exported_again(tmp_path):
    old = tf.train.Checkpoint(weights=tf.train.Checkpoint(**{"forward_0/from_input": tf.Variable(1.0)}))
    old.write(str(tmp_path / contract.VARIABLES_PREFIX))
    with pytest.raises(
        InputError, match=rf"^{tmp_path}: exported by an earlier version of elmo_tf, .*; export it again$"
    ):
        stored_weights.read_weights(tmp_path, MICRO)
