"""The `info` of vectors on disk: what readers accept, and how a damaged one is refused."""

import json

import h5py
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder, wire
from elmo_tf.savedmodel import vector_files

INFO = {
    "format_version": vector_files.FORMAT_VERSION,
    "layers": "top",
    "dtype": "float16",
    "lines": 1,
    "savedmodel_sha256": "0",
    "tokenizer": "whitespace",
    "line": "sentence",
}
SHARD = record_folder.shard_name(0, 1)
SHARDS = {"shards": [{"name": SHARD}]}


def write_hdf5(path, info: str) -> None:
    with h5py.File(path, "w") as file:
        file.attrs[vector_files.INFO_ATTRIBUTE] = info


def write_folder(path, info: str) -> None:
    path.mkdir()
    (path / record_folder.MARKER_FILE).touch()
    (path / record_folder.INFO_FILE).write_text(info)


def without(key: str) -> dict:
    return {name: value for name, value in INFO.items() if name != key}


DAMAGED = [
    ("", "JSON, found Expecting value"),
    ("[]", "object, found a list of 0"),
    ('{"format_version": "1"}', 'format_version to be a valid value, found "1"'),
    *((json.dumps(without(key)), f"the key {key}, found none") for key in INFO),
    (json.dumps(INFO | {"lines": -5}), "lines to be int >= 0, found -5"),
    (json.dumps(INFO | {"lines": True}), "lines to be int, found true"),
    (json.dumps(INFO | {"layers": ["top"]}), "layers to be int \\| str, found a list of 1"),
    (json.dumps(INFO | {"dtype": "int8"}), 'dtype to be a valid value, found "int8"'),
]


@pytest.mark.parametrize(("info", "message"), DAMAGED, ids=[message for _, message in DAMAGED])
def test_a_damaged_info_is_refused_in_one_line(tmp_path, info, message):
    write_hdf5(tmp_path / "file", info)
    with pytest.raises(InputError, match=rf"^{tmp_path}/file: expected {message}"):
        vector_files.open_hdf5(tmp_path / "file")
    write_folder(tmp_path / "folder", info)
    with pytest.raises(InputError, match=rf"^{tmp_path}/folder/info.json: expected {message}"):
        vector_files.read_tfrecords(tmp_path / "folder")


@pytest.mark.parametrize("shards", [None, 3, {}, ["shard"], [{}], [{"name": 3}], [{"name": f"../{SHARD}"}]])
def test_shards_that_are_not_files_of_the_folder_are_refused(tmp_path, shards):
    write_folder(tmp_path / "folder", json.dumps(INFO | {"shards": shards}))
    with pytest.raises(InputError, match=rf"^{tmp_path}/folder/info.json: expected (the key )?shards.*, found "):
        vector_files.read_tfrecords(tmp_path / "folder")


def test_an_attribute_that_is_not_text_is_another_programs(tmp_path):
    with h5py.File(tmp_path / "file", "w") as file:
        file.attrs[vector_files.INFO_ATTRIBUTE] = [1, 2]
    message = rf"^{tmp_path}/file: expected an HDF5 file of .*, found another program's$"
    with pytest.raises(InputError, match=message):
        vector_files.open_hdf5(tmp_path / "file")


def test_intact_files_are_read(tmp_path):
    write_hdf5(tmp_path / "file", json.dumps(INFO))
    file, info = vector_files.open_hdf5(tmp_path / "file")
    file.close()
    assert info == INFO
    write_folder(tmp_path / "folder", json.dumps(INFO | SHARDS))
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    (tmp_path / "folder" / SHARD).write_bytes(wire.frame(wire.encode_vectors(0, [b"a", b"b"], values)))
    (line,) = vector_files.read_tfrecords(tmp_path / "folder")
    assert (line["tokens"].numpy().tolist(), line["vectors"].dtype) == ([b"a", b"b"], tf.float16)
    np.testing.assert_array_equal(line["vectors"], values)
