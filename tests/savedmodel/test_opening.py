"""Opening an exported model: intact ones open; lost, damaged and foreign files are named."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import sources
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import assets, checksums, contract, opening
from tests.helpers import MICRO_CONFIG

VARIABLES = "variables/variables.data-00000-of-00001"
FILES = [
    "assets/config.json",
    "assets/provenance.json",
    "fingerprint.pb",
    "saved_model.pb",
    VARIABLES,
    "variables/variables.index",
]


@pytest.fixture
def copy(savedmodel, tmp_path):
    """A model of one's own to damage."""
    return shutil.copytree(savedmodel.path, tmp_path / "model" / "3")


def flip(path):
    """Changes one bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_an_exported_model_opens_as_tensorflow_loads_it(savedmodel, loaded):
    opened = opening.open_savedmodel(savedmodel.path, verify_checksums=True)
    found, expected = (one.signatures["default"](strings=tf.constant(["a bank"])) for one in (opened, loaded))
    np.testing.assert_array_equal(found["elmo"], expected["elmo"])


def test_of_a_models_folder_the_newest_version_is_taken(copy):
    for name in ("10", "9"):
        shutil.copytree(copy, copy.parent / name)
    (copy.parent / "README.md").touch()
    (copy.parent / ".11.incomplete-1").mkdir()
    assert opening.check(copy.parent) == copy.parent / "10"
    assert opening.check(copy) == copy


def test_the_list_names_every_file_with_its_size_and_sha256(tmp_path, savedmodel):
    listed = checksums.read(savedmodel.path)
    assert set(FILES) <= set(listed) == set(checksums.names(savedmodel.path))
    (tmp_path / "saved_model.pb").write_bytes(b"abc")
    checksums.write(tmp_path)
    # FIPS 180-4, its first example.
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert checksums.read(tmp_path) == {"saved_model.pb": checksums.Listed(3, digest)}


@pytest.mark.parametrize("name", [*FILES, contract.CHECKSUMS_FILE])
def test_a_lost_file_is_named(copy, name):
    (copy / name).unlink()
    expected = "a folder with saved_model.pb" if name == "saved_model.pb" else f"the file {name}"
    with pytest.raises(InputError, match=rf"^{copy}: expected {expected}.*, found none$"):
        opening.open_savedmodel(copy)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_size_is_named_without_being_read(copy, name):
    size = (copy / name).stat().st_size
    os.truncate(copy / name, size - 1)
    with pytest.raises(InputError, match=f"^{copy}/{name}: expected {size} bytes, found {size - 1}$"):
        opening.open_savedmodel(copy)


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_one_other_bit_is_named_on_request(copy, name):
    flip(copy / name)
    with pytest.raises(InputError, match=rf"^{copy}/{name}: expected SHA-256 \w+, found \w+$"):
        opening.open_savedmodel(copy, verify_checksums=True)


def test_an_unknown_file_is_named_on_request(copy):
    (copy / "assets" / "more.txt").touch()
    assert opening.check(copy) == copy
    with pytest.raises(InputError, match=r"expected only files that are listed in .*, found assets/more.txt$"):
        opening.check(copy, verify_checksums=True)


LISTS = [
    ("", "JSON, found Expecting value"),
    ("[]", "object, found a list of 0"),
    ("{}", "the key saved_model.pb, found none"),
    ('{"saved_model.pb": {"bytes": "3", "sha256": "x"}}', r"\[...\].bytes to be int, found another value"),
]


@pytest.mark.parametrize(("content", "message"), LISTS, ids=[message for _, message in LISTS])
def test_a_damaged_list_is_named(copy, content, message):
    (copy / contract.CHECKSUMS_FILE).write_text(content)
    with pytest.raises(InputError, match=rf"^{copy}/{contract.CHECKSUMS_FILE}: expected {message}"):
        opening.check(copy)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError("none"), "^none$"),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), "^OOM"),
        (ValueError("a\n  b"), "^/.*: expected an intact SavedModel, found a b$"),
    ],
)
def test_what_tensorflow_says_of_damage_is_one_line_and_too_little_memory_is_none(
    savedmodel, monkeypatch, error, message
):
    def load(_):
        raise error

    monkeypatch.setattr(tf.saved_model, "load", load)
    with pytest.raises(InputError if type(error) is ValueError else type(error), match=message):
        opening.open_savedmodel(savedmodel.path)


def test_a_folder_without_a_model_is_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "model" / "7").mkdir(parents=True)
    for name in ("missing", "file", "model", "."):
        with pytest.raises(InputError, match=f"^{tmp_path / name}: expected a folder with saved_model.pb, found none$"):
            opening.check(tmp_path / name)


def test_a_model_without_the_contracts_signatures_is_refused_listed_or_not(tmp_path):
    module = tf.Module()
    module.double = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec((None,), tf.float32, name="x")])
    tf.saved_model.save(module, str(tmp_path), signatures={"one": module.double})
    expected = "the signatures serving_default, default, tokens, char_ids, stream of elmo-tf export"
    for _ in range(2):
        with pytest.raises(InputError, match=rf"^{tmp_path}: expected {expected}, found \['one'\]$"):
            opening.open_savedmodel(tmp_path)
        checksums.write(tmp_path)


def test_a_signature_with_other_inputs_is_refused(loaded, savedmodel, tmp_path):
    functions = {name: loaded.signatures[name] for name in contract.SIGNATURES}
    tf.saved_model.save(loaded, str(tmp_path), signatures=functions | {"stream": functions["tokens"]})
    shutil.copytree(savedmodel.path / "assets", tmp_path / "assets", dirs_exist_ok=True)
    checksums.write(tmp_path)
    with pytest.raises(InputError) as caught:
        opening.check(tmp_path)
    message, tokens = str(caught.value), "sequence_len int32 (None,), tokens string (None, None)"
    first = "inputs of the signature stream to be backward_cell1 float32 (None, 24)"
    assert message.startswith(f"{tmp_path}: expected {first}") and message.endswith(f"{tokens}, found {tokens}")


def test_a_graph_that_cannot_be_read_is_named(copy):
    (copy / "saved_model.pb").write_bytes(b"\xff" * 50)
    checksums.write(copy)
    with pytest.raises(InputError, match=rf"^{copy}: expected a readable saved_model.pb, found"):
        opening.open_savedmodel(copy)


def test_damage_that_only_tensorflow_notices_is_reported_with_the_folder(copy):
    flip(copy / "variables/variables.index")
    with pytest.raises(InputError, match=rf"^{copy}: expected an intact SavedModel, found "):
        opening.open_savedmodel(copy)


LSTM = '{"model": {"char_cnn": {}, "lstm": {"units": 24, "projection_dim": 8, "num_layers": 2}}}'
CONFIGS = [
    ("[]", "object, found a list of 0"),
    ("{", "JSON, found Expecting property name"),
    ("{}", "the key model, found none"),
    ('{"model": {"char_cnn": {}, "lstm": 3}}', "model.lstm to be object, found 3"),
    (LSTM.replace('"lstm"', '"other": 1, "lstm"'), "model to be a valid value, found an object"),
    (LSTM.replace("24", '"24"'), "model.lstm.units to be .*, found "),
    (LSTM.replace('"num_layers": 2', '"num_layers": 100'), "2 LSTM layers in assets/config.json, as in the graph"),
    (LSTM.replace("24", "1000000000"), r"inputs of the signature stream to be .* float32 \(None, 1000000000\)"),
    (LSTM.replace(": 8", ": 9"), r"outputs of .* elmo float32 \(None, None, 18\).* found"),
]


@pytest.mark.parametrize(("content", "message"), CONFIGS, ids=[content for content, _ in CONFIGS])
def test_a_configuration_that_is_not_the_models_is_refused_in_one_line(copy, content, message):
    (copy / "assets" / "config.json").write_text(content)
    checksums.write(copy)
    with pytest.raises(InputError, match=rf"^{copy}(/assets/config.json)?: expected {message}"):
        opening.check(copy)


@pytest.mark.parametrize("train", ['{"optimizer": "later"}', '{"unknown": 1}', "3"])
def test_training_settings_of_a_later_version_are_no_obstacle(copy, train):
    config = json.loads((copy / "assets" / "config.json").read_text())
    (copy / "assets" / "config.json").write_text(json.dumps(config | {"train": json.loads(train)}))
    checksums.write(copy)
    opening.check(copy)
    assert assets.read_config(copy) == MICRO_CONFIG.model


@pytest.mark.parametrize("content", ['"text"', "{}", '{"tokenizer": "words"}', '{"tokenizer": ["unicode"]}'])
def test_a_provenance_without_a_known_tokenizer_is_refused(copy, content):
    (copy / "assets" / "provenance.json").write_text(content)
    checksums.write(copy)
    for read in (opening.check, sources.find):
        with pytest.raises(InputError, match=rf"^{copy}/assets/provenance.json: expected .*, found "):
            read(copy)
