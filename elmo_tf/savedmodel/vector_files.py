"""The two formats in which `elmo-tf embed` writes the vectors of a text, and how to read them.

HDF5: dataset `str(line)` for each line, `(layers, tokens, dim)` or `(tokens, dim)`, as bilm-tf and AllenNLP write them;
the attribute `elmo_tf` of the file holds `info`.

TFRecord: a folder of shards with `info.json` and the marker `_SUCCESS`; a `tf.train.Example` a line with `line`,
`tokens`, `shape`, `dtype` and `vectors`, the values as little-endian bytes.
"""

import json
import os
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import h5py

from elmo_tf.errors import InputError, renamed
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import contract, embedding

if TYPE_CHECKING:
    import tensorflow as tf

FORMAT_VERSION = "vectors-1"
INFO_ATTRIBUTE = "elmo_tf"


# What readers need of `info`, and what it has to be.
_INFO: dict[str, tuple[Callable[[Any], bool], str]] = {
    "layers": (lambda value: value in embedding.LAYERS, f"one of {', '.join(embedding.LAYERS)}"),
    "dtype": (lambda value: value in ("float32", "float16"), "float32 or float16"),
    "lines": (lambda value: type(value) is int and value >= 0, "a count"),
    "savedmodel_sha256": (lambda value: isinstance(value, str), "a string"),
    "tokenizer": (lambda value: value in contract.TOKENIZERS, f"one of {', '.join(contract.TOKENIZERS)}"),
    "line": (lambda value: isinstance(value, str), "a string"),
}


def open_hdf5(vectors: str | os.PathLike) -> tuple[h5py.File, dict[str, Any]]:
    """Opens vectors in HDF5 for reading; returns the file and its `info`.

    Raises:
        InputError: if `elmo-tf embed` has not written the file, or its `info` is damaged.
    """
    expected = "an HDF5 file of `elmo-tf embed`"
    if not os.path.isfile(vectors):
        raise InputError("vectors", expected, f"{'a folder' if os.path.isdir(vectors) else 'none'}: {vectors}")
    try:
        file = h5py.File(vectors)
    except OSError as error:
        raise InputError("vectors", expected, f"{error}: {vectors}") from None
    try:
        if INFO_ATTRIBUTE not in file.attrs:
            raise InputError("vectors", expected, f"another program's: {vectors}")
        with renamed(info="vectors"):
            return file, _parse_info(file.attrs[INFO_ATTRIBUTE], vectors)
    except InputError:
        file.close()
        raise


def read_tfrecords(folder: str | os.PathLike) -> "tf.data.Dataset":
    """Returns the vectors in a finished folder, a line of the text at a time, in the text's order.

    Each element is a dictionary: `line` int64, `tokens` string `(tokens,)`, `vectors` float32 or float16
    `(layers, tokens, dim)` or `(tokens, dim)`.

    Raises:
        InputError: if the folder is not finished, or its `info.json` is damaged or of another format.
    """
    import tensorflow as tf  # noqa: PLC0415 - the rest of this module works without it

    folder = pathlib.Path(folder)
    if not (folder / record_folder.MARKER_FILE).is_file():
        raise InputError("folder", "a finished folder of `elmo-tf embed`", f"none: {folder}")
    try:
        text = (folder / record_folder.INFO_FILE).read_bytes()
    except OSError as error:
        raise InputError("folder", record_folder.INFO_FILE, f"{error.strerror}: {folder}") from None
    with renamed(info="folder"):
        info = _parse_info(text, folder)
        shards = [str(folder / name) for name in _shard_names(info, folder)]
    dtype = tf.dtypes.as_dtype(info["dtype"])
    return tf.data.TFRecordDataset(shards).map(lambda record: parse(record, dtype))


def parse(record: "tf.Tensor", dtype: "tf.DType") -> dict[str, "tf.Tensor"]:
    """Returns the contents of one record; see `read_tfrecords`."""
    import tensorflow as tf  # noqa: PLC0415 - see there

    features = {
        "line": tf.io.FixedLenFeature([], tf.int64),
        "tokens": tf.io.RaggedFeature(tf.string),
        "shape": tf.io.RaggedFeature(tf.int64),
        "vectors": tf.io.FixedLenFeature([], tf.string),
    }
    found = tf.io.parse_single_example(record, features)
    vectors = tf.reshape(tf.io.decode_raw(found["vectors"], dtype), found["shape"])
    return {"line": found["line"], "tokens": found["tokens"], "vectors": vectors}


def _parse_info(info: str | bytes, source: str | os.PathLike) -> dict[str, Any]:
    """Returns `info` from its JSON.

    Raises:
        InputError: if it is not JSON of this format, or a value that readers need is missing or wrong.
    """
    try:
        values = json.loads(info)
    except (ValueError, TypeError) as error:
        raise InputError("info", "JSON of `elmo-tf embed`", f"{error}: {source}") from None
    if not isinstance(values, dict) or "format_version" not in values:
        raise InputError("info", "an object with format_version", f"{json.dumps(values)[:99]}: {source}")
    if values["format_version"] != FORMAT_VERSION:
        raise InputError("info", f"the format {FORMAT_VERSION}", f"{values['format_version']}: {source}")
    for key, (is_right, expected) in _INFO.items():
        if key not in values or not is_right(values[key]):
            found = json.dumps(values[key])[:99] if key in values else "no such key"
            raise InputError("info", f"{key} to be {expected}", f"{found}: {source}")
    return values


def _shard_names(info: dict[str, Any], folder: pathlib.Path) -> list[str]:
    """Returns the names of the files in a folder of vectors.

    Raises:
        InputError: if `info` does not list files in the folder by their names.
    """
    shards = info.get("shards")
    entries = shards if isinstance(shards, list) else [None]
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
    if not all(isinstance(name, str) and pathlib.Path(name).name == name for name in names):
        raise InputError("info", "shards to be a list of files with names", f"{json.dumps(shards)[:99]}: {folder}")
    return names
