"""Records: the bytes of the format, as TensorFlow reads and writes them, and the folder that holds them."""

import json

import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder, wire
from tests import helpers


@pytest.mark.parametrize("contents", [[], [b"", b"one", bytes(range(256)) * 300]], ids=len)
def test_a_shard_is_the_file_that_tensorflow_writes_and_reads(tmp_path, contents):
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for content in contents:
            writer.write(content)
    (tmp_path / "ours").write_bytes(b"".join(map(wire.frame, contents)))
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert record_folder.read_shard(tmp_path / "theirs") == contents
    assert list(tf.data.TFRecordDataset(str(tmp_path / "ours")).as_numpy_iterator()) == contents


FRAMED = wire.frame(b"fine") + wire.frame(b"then")


@pytest.mark.parametrize(
    ("content", "position"),
    [
        *((FRAMED[:at] + bytes([FRAMED[at] ^ 1]) + FRAMED[at + 1 :], 0) for at in (0, 9, 14)),
        *((FRAMED[:-missing], 20) for missing in (1, 4, 6, 10, 19)),
    ],
)
def test_a_wrong_byte_or_a_cut_file_is_refused_by_its_position(tmp_path, content, position):
    (tmp_path / "shard").write_bytes(content)
    with pytest.raises(InputError, match=rf"shard: .*TFRecord at byte {position}\b"):
        record_folder.read_shard(tmp_path / "shard")


def test_a_finished_folder_opens(tmp_path):
    made = helpers.write_records(tmp_path / "data", ["a b", "c", "a"], num_shards=2)
    opened = record_folder.open_folder(tmp_path / "data")
    assert opened.vocabulary.tokens == made.vocabulary.tokens
    assert opened.info.sentences == 3
    assert [path.name for path in opened.shards] == ["shard-00000-of-00002.tfrecord", "shard-00001-of-00002.tfrecord"]
    assert sum(len(record_folder.read_shard(shard)) for shard in opened.shards) == 3


SHARD = "shard-00001-of-00002.tfrecord"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("_SUCCESS", None, ": not a finished folder of elmo-tf preprocess: it has no _SUCCESS marker"),
        ("vocab.txt", b"<S>\n</S>\n<UNK>\nother\n", "/vocab.txt: its checksum differs from info.json"),
        ("vocab.txt", None, "/vocab.txt: no such file"),
        (SHARD, None, rf"/{SHARD}: no such file"),
        (SHARD, b"xx", rf"/{SHARD}: is 2 bytes, info.json says \d+"),
    ],
)
def test_a_folder_with_another_file_is_refused(tmp_path, name, content, message):
    helpers.write_records(tmp_path, ["a b", "c"])
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"^{tmp_path}{message}"):
        record_folder.open_folder(tmp_path)
    with pytest.raises(InputError, match="none: no such folder"):
        record_folder.open_folder(tmp_path / "none")


def changed_shard(**values):
    return lambda info: info | {"shards": [info["shards"][0] | values, info["shards"][1]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: [], "expected object, found a list of 0"),
        ({"format_version": 99}, "format_version to be int <= 1, found 99"),
        ({"sentences": 0}, "sentences to be int >= 1, found 0"),
        ({"sentences": 3}, "the shards add up to 2 sentences, `sentences` says 3"),
        ({"max_chars_per_token": 2}, "max_chars_per_token to be int >= 3, found 2"),
        (changed_shard(name="../shard"), r"shards\[\d\].name to be str matching regex"),
        (changed_shard(sha256="x"), r"shards\[\d\].sha256 to be str matching regex"),
    ],
)
def test_an_info_json_of_wrong_types_or_ranges_is_refused_by_name(tmp_path, change, message):
    file = helpers.write_records(tmp_path / "data", ["a b", "c"]).path / "info.json"
    info = json.loads(file.read_text())
    file.write_text(json.dumps(info | change if isinstance(change, dict) else change(info)))
    with pytest.raises(InputError, match=f"^{file}: (expected )?{message}"):
        record_folder.open_folder(file.parent)
