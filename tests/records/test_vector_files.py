"""The folders of vectors that `embed` writes: what is read, and how a damaged `info.json` is refused."""

import json

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder, vector_files, wire

SHARD = record_folder.shard_name(0, 1)
INFO = {"format_version": vector_files.FORMAT_VERSION, "dtype": "float16", "shards": [{"name": SHARD, "bytes": 0}]}


def write_folder(path, info: str) -> None:
    path.mkdir()
    (path / record_folder.MARKER_FILE).touch()
    (path / record_folder.INFO_FILE).write_text(info)


DAMAGED = [
    ("", "not JSON: Expecting value"),
    ("[]", "expected object, found a list of 0"),
    ('{"format_version": "1"}', 'format_version to be a valid value, found "1"'),
    (json.dumps({name: value for name, value in INFO.items() if name != "dtype"}), "no key dtype"),
    (json.dumps(INFO | {"dtype": "int8"}), 'dtype to be a valid value, found "int8"'),
    (json.dumps(INFO | {"shards": ["shard"]}), "shards.*, found "),
    (json.dumps(INFO | {"shards": [{"name": f"../{SHARD}", "bytes": 0}]}), "shards.*, found "),
]


@pytest.mark.parametrize(("info", "message"), DAMAGED)
def test_a_damaged_info_is_refused_in_one_line(tmp_path, info, message):
    write_folder(tmp_path / "folder", info)
    with pytest.raises(InputError, match=rf"^{tmp_path}/folder/info.json: .*{message}"):
        vector_files.read_tfrecords(tmp_path / "folder")


def test_an_intact_folder_is_read(tmp_path):
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    frames = [wire.frame(vector_files.encode(number, [b"a", b"b"], values)) for number in range(2)]
    info = INFO | {"shards": [{"name": SHARD, "bytes": len(frames[0])}]}
    write_folder(tmp_path / "folder", json.dumps(info))
    (tmp_path / "folder" / SHARD).write_bytes(frames[0])
    (line,) = vector_files.read_tfrecords(tmp_path / "folder")
    assert (line["tokens"].numpy().tolist(), line["vectors"].dtype) == ([b"a", b"b"], tf.float16)
    np.testing.assert_array_equal(line["vectors"], values)
    (tmp_path / "folder" / SHARD).write_bytes(b"".join(frames))
    with pytest.raises(InputError, match=rf"/{SHARD}: it has [0-9,]+ bytes, but should have {len(frames[0])}$"):
        vector_files.read_tfrecords(tmp_path / "folder")
