"""The formats in which `elmo-tf embed` writes the vectors of a text, and how to read them.

HDF5: a dataset for each line, named by its identifier or else its number, `(layers, tokens, dim)` or `(tokens, dim)`,
as bilm-tf and AllenNLP write them. The dataset's attribute `sentence` has the tokens, joined by spaces; the attribute
`elmo_tf` of the file holds `info`.

TFRecord: a folder of shards with `info.json` and the marker `_SUCCESS`; one `tf.train.Example` per line of text has
`line`, `id` (if there are identifiers), `tokens`, `shape`, `dtype` and `vectors`, the values as little-endian bytes.

npy: a folder with `vectors.npy` (one row per line of text), `ids.txt` (each row's identifier or number, one per line),
`sentences.txt` (each row's tokens, joined by spaces), `info.json` and `_SUCCESS`.

With `pool` in `info`, a line has `(layers, dim)` or `(dim,)`.
"""

import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files import intact, json_file, stores
from elmo_tf.files.json_file import Count
from elmo_tf.records import record_folder, wire

if TYPE_CHECKING:
    import tensorflow as tf

FORMAT_VERSION = "vectors-1"
INFO_ATTRIBUTE = "elmo_tf"  # of the HDF5 file
SENTENCE_ATTRIBUTE = "sentence"  # of each of its datasets
MATRIX_FILE, IDS_FILE, SENTENCES_FILE = "vectors.npy", "ids.txt", "sentences.txt"


class _Shard(msgspec.Struct, frozen=True):
    name: record_folder.ShardName
    bytes: Count


class _Info(msgspec.Struct, frozen=True, kw_only=True):
    """What readers need of `info`."""

    format_version: Literal[FORMAT_VERSION]  # type: ignore[valid-type]
    dtype: Literal["float32", "float16"]
    shards: list[_Shard]
    identifiers: bool = False


def encode(line: int, tokens: Sequence[bytes], vectors: np.ndarray, identifier: bytes = b"") -> bytes:
    """Returns the vectors of a line, little-endian, as a serialized `tf.train.Example`.

    `line` is its number; if `identifier` is empty, there is no such feature.
    """
    import tensorflow as tf  # noqa: PLC0415 - the rest of this module works without it

    example = tf.train.Example()
    feature = example.features.feature
    feature["line"].int64_list.value.append(line)
    feature["shape"].int64_list.value.extend(vectors.shape)
    strings = {"dtype": [vectors.dtype.name.encode()], "tokens": tokens, "vectors": [vectors.tobytes()]}
    for name, values in (strings | ({"id": [identifier]} if identifier else {})).items():
        feature[name].bytes_list.SetInParent()  # a line may have no tokens
        feature[name].bytes_list.value.extend(values)
    return example.SerializeToString(deterministic=True)


def decode(record: bytes) -> tuple[bytes, list[bytes], np.ndarray]:
    """Returns the name of an encoded line, which is its identifier or else its number, its tokens and its vectors."""
    import tensorflow as tf  # noqa: PLC0415

    feature = tf.train.Example.FromString(record).features.feature
    strings = {name: list(feature[name].bytes_list.value) for name in ("dtype", "id", "tokens", "vectors")}
    (dtype,), (content,) = strings["dtype"], strings["vectors"]
    vectors = np.frombuffer(content, dtype.decode()).reshape(feature["shape"].int64_list.value)
    (name,) = strings["id"] or [b"%d" % feature["line"].int64_list.value[0]]
    return name, strings["tokens"], vectors


def read_shard(path: str, num_lines: int) -> Iterator[bytes]:
    """Yields the encoded lines of a shard, local or in a store.

    Raises:
        stores.ReadError: if it cannot be read, a checksum is wrong, or it does not have `num_lines` lines.
    """
    count = 0
    with stores.read_errors(path), stores.open_file(path) as file:
        try:
            for record in wire.read_frames(file):
                yield record
                count += 1
        except wire.DamagedError as error:
            raise stores.ReadError(f"{path} is damaged: {error}") from None
    if count != num_lines:
        raise stores.ReadError(f"{path} is damaged: it has {count:,} of {num_lines:,} lines")


def read_tfrecords(folder: str | os.PathLike) -> "tf.data.Dataset":
    """Returns the vectors in a finished folder, a line of the text at a time, in the text's order.

    Each element is a dictionary: `line` int64, `id` string if there are identifiers, `tokens` string `(tokens,)`,
    `vectors` float32 or float16 `(layers, tokens, dim)` or `(tokens, dim)`; pooled, `(layers, dim)` or `(dim,)`.

    Raises:
        InputError: if the folder is not finished, its `info.json` is damaged or of another format, or a shard does not
            have its size. TensorFlow raises an error for a wrong checksum.
    """
    import tensorflow as tf  # noqa: PLC0415 - the rest of this module works without it

    folder = pathlib.Path(folder)
    if not (folder / record_folder.MARKER_FILE).is_file():
        problem = f"not a finished folder of elmo-tf embed: it has no {record_folder.MARKER_FILE} marker"
        raise InputError(str(folder), problem)
    info = json_file.read(folder / record_folder.INFO_FILE, _Info)
    features = {
        "line": tf.io.FixedLenFeature([], tf.int64),
        "tokens": tf.io.RaggedFeature(tf.string),
        "shape": tf.io.RaggedFeature(tf.int64),
        "vectors": tf.io.FixedLenFeature([], tf.string),
    }
    if info.identifiers:
        features["id"] = tf.io.FixedLenFeature([], tf.string)

    def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
        values = tf.io.parse_single_example(record, features)
        vectors = tf.reshape(tf.io.decode_raw(values["vectors"], tf.dtypes.as_dtype(info.dtype)), values["shape"])
        elements = {name: values[name] for name in features if name not in ("shape", "vectors")}
        return elements | {"vectors": vectors}

    shards = [folder / shard.name for shard in info.shards]
    for path, shard in zip(shards, info.shards, strict=True):
        intact.check(path, shard.bytes, None)
    return tf.data.TFRecordDataset(list(map(str, shards))).map(parse)
