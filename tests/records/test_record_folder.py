"""Records: the bytes of the format, as TensorFlow reads and writes them, and the folder that holds them."""

import json
import pickle

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder, wire
from tests import helpers

TOKEN_IDS, CHAR_BYTES, CHAR_LENGTHS = [0, 5, 793_470, 1], "caf\u00e9x".encode(), bytes([5, 1])


def tensorflow_example() -> bytes:
    def of_bytes(value: bytes) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    feature = {
        "token_ids": tf.train.Feature(int64_list=tf.train.Int64List(value=TOKEN_IDS)),
        "char_ids": of_bytes(CHAR_BYTES),
        "char_lengths": of_bytes(CHAR_LENGTHS),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def test_an_example_is_the_bytes_that_tensorflow_writes():
    assert wire.encode_example(wire.varints(TOKEN_IDS), CHAR_BYTES, CHAR_LENGTHS) == tensorflow_example()


def test_a_sentence_comes_back_from_tensorflows_example():
    sentence = record_folder.decode_example(tensorflow_example())
    assert sentence.token_ids.tolist() == TOKEN_IDS
    assert sentence.char_bytes.tobytes() == CHAR_BYTES
    assert sentence.char_lengths.tolist() == [5, 1]
    assert [part.dtype for part in sentence] == [np.int64, np.uint8, np.uint8]


def test_a_shard_is_the_file_that_tensorflow_writes_and_reads(tmp_path):
    contents = [b"", b"one", bytes(range(256)) * 300]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for content in contents:
            writer.write(content)
    (tmp_path / "ours").write_bytes(b"".join(map(wire.frame, contents)))
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert list(record_folder.read_shard(tmp_path / "theirs")) == contents
    assert list(tf.data.TFRecordDataset(str(tmp_path / "ours")).as_numpy_iterator()) == contents


@pytest.mark.parametrize("place", [0, 9, 14, -1])
def test_one_wrong_byte_is_found(tmp_path, place):
    content = bytearray(wire.frame(b"fine") + wire.frame(b"then"))
    content[place] ^= 1
    (tmp_path / "shard").write_bytes(content)
    for read in (record_folder.read_shard, record_folder.load_shard):
        with pytest.raises(InputError, match=r"shard: expected an? .*TFRecord at byte"):
            list(read(tmp_path / "shard"))


@pytest.mark.parametrize("missing", [1, 4, 6, 10, 19])
def test_a_file_that_ends_within_a_record_is_refused(tmp_path, missing):
    content = wire.frame(b"fine") + wire.frame(b"then")
    (tmp_path / "shard").write_bytes(content[:-missing])
    read = record_folder.read_shard(tmp_path / "shard")
    assert next(read) == b"fine"
    with pytest.raises(InputError, match="at byte 20"):
        next(read)


def test_a_loaded_shard_is_its_bytes_and_the_places_of_its_records(tmp_path):
    contents = [b"", b"one", bytes(range(256)) * 300]
    (tmp_path / "shard").write_bytes(b"".join(map(wire.frame, contents)))
    shard = record_folder.load_shard(tmp_path / "shard")
    assert [shard.content[start:end] for start, end in zip(shard.starts, shard.ends, strict=True)] == contents
    assert shard.content == (tmp_path / "shard").read_bytes()


@pytest.mark.parametrize("record", [b"\xff", b"", wire.encode_example(wire.varints([]), b"", b"")])
def test_a_record_that_is_not_a_sentence_is_refused(record):
    with pytest.raises(InputError, match="record 0: expected a sentence, found") as caught:
        record_folder.decode_example(record)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_empty_shard_has_no_records(tmp_path):
    (tmp_path / "shard").touch()
    assert len(record_folder.load_shard(tmp_path / "shard").starts) == 0
    assert list(record_folder.read_shard(tmp_path / "shard")) == []


def test_shard_names_sort_in_their_order():
    assert record_folder.shard_name(3, 12) == "shard-00003-of-00012.tfrecord"


def test_a_finished_folder_opens(tmp_path):
    made = helpers.write_records(tmp_path / "data", ["a b", "c", "a"], num_shards=2)
    opened = record_folder.open_folder(tmp_path / "data")
    assert opened.vocabulary.tokens == made.vocabulary.tokens
    assert opened.info["sentences"] == 3
    assert [path.name for path in opened.shards] == ["shard-00000-of-00002.tfrecord", "shard-00001-of-00002.tfrecord"]
    assert sum(len(list(record_folder.read_shard(shard))) for shard in opened.shards) == 3


def test_what_is_not_the_finished_folder_is_refused(tmp_path):
    folder = tmp_path / "data"
    with pytest.raises(InputError, match=r"^path: expected a finished folder .* found no such folder"):
        record_folder.open_folder(folder)

    def refused(message: str, name: str, content: bytes | None) -> None:
        helpers.write_records(folder, ["a b", "c"])
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
        with pytest.raises(InputError, match=f"^path: {message}"):
            record_folder.open_folder(folder)

    shard = "shard-00001-of-00002.tfrecord"
    info = {**helpers.write_records(folder, ["a b", "c"]).info, "format_version": 99}
    refused("expected a finished folder of `elmo-tf preprocess`, found no _SUCCESS", "_SUCCESS", None)
    refused("expected records of format 1, found 99", "info.json", json.dumps(info).encode())
    refused("expected the vocabulary that info.json describes", "vocab.txt", b"<S>\n</S>\n<UNK>\nother\n")
    refused("expected a folder with vocab.txt, found No such file", "vocab.txt", None)
    refused(r"expected \d+ bytes, found None: .*shard-00001", shard, None)
    refused(r"expected \d+ bytes, found 2: .*shard-00001", shard, b"xx")


def changed(**values):
    return lambda info: info | values


def changed_shard(**values):
    return lambda info: info | {"shards": [info["shards"][0] | values, info["shards"][1]]}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda _: [], "expected an object, found a list of 0"),
        (lambda _: {}, "expected the key format_version, found none"),
        (lambda info: {"format_version": info["format_version"]}, "expected the key sentences, found none"),
        (changed(format_version="1"), 'expected format_version to be a whole number of at least 0, found "1"'),
        (changed(sentences=-5), "expected sentences to be a whole number of at least 1, found -5"),
        (changed(sentences=0), "expected sentences to be a whole number of at least 1, found 0"),
        (changed(sentences=True), "expected sentences to be a whole number of at least 1, found true"),
        (changed(sentences=10**30), "expected sentences to be a whole number of at least 1, found 10000"),
        (changed(sentences=3), "expected shards with 3 sentences in all, found 2"),
        (changed(tokens=2.5), "expected tokens to be a whole number of at least 0, found 2.5"),
        (changed(max_chars_per_token=2), "expected max_chars_per_token to be a whole number from 3 to 257, found 2"),
        (changed(vocabulary=None), "expected vocabulary to be an object, found null"),
        (changed(vocabulary={}), "expected the key vocabulary.sha256, found none"),
        (changed(shards={}), "expected shards to be a list, found an object"),
        (changed(shards=[3]), r"expected shards\[0\] to be an object, found 3"),
        (changed_shard(bytes=None), r"expected shards\[0\].bytes to be a whole number of at least 0, found null"),
        (changed_shard(sentences=-1), r"expected shards\[0\].sentences to be a whole number of at least 0, found -1"),
        (changed_shard(name="../shard"), r"expected shards\[0\].name to be a string like .*, found \"../shard\""),
        (changed_shard(sha256="x"), r"expected shards\[0\].sha256 to be a string like .*, found \"x\""),
    ],
)
def test_an_info_json_of_wrong_types_or_ranges_is_refused_by_name(tmp_path, spoil, message):
    made = helpers.write_records(tmp_path / "data", ["a b", "c"])
    file = made.path / "info.json"
    file.write_text(json.dumps(spoil(made.info)))
    with pytest.raises(InputError, match=f"^{file}: {message}"):
        record_folder.open_folder(made.path)
