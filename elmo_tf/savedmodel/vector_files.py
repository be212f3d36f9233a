"""The two formats in which `elmo-tf embed` writes the vectors of a text, and how to read them.

HDF5: dataset `str(line)` for each line, `(layers, tokens, dim)` or `(tokens, dim)`, as bilm-tf and AllenNLP write them;
the attribute `elmo_tf` of the file holds `info`.

TFRecord: a folder of shards with `info.json` and the marker `_SUCCESS`; a `tf.train.Example` a line with `line`,
`tokens`, `shape`, `dtype` and `vectors`, the values as little-endian bytes.
"""

import os
import pathlib
from typing import TYPE_CHECKING, Any

import h5py

from elmo_tf.errors import InputError, reason
from elmo_tf.files import json_file
from elmo_tf.files.json_file import ListOf, Object, OneOf, Text, Whole
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import contract

if TYPE_CHECKING:
    import tensorflow as tf

FORMAT_VERSION = "vectors-1"
INFO_ATTRIBUTE = "elmo_tf"
# What readers need of `info`. The version is checked first.
_INFO = Object(
    {
        "format_version": OneOf((FORMAT_VERSION,)),
        "layers": OneOf(contract.LAYERS),
        "dtype": OneOf(("float32", "float16")),
        "lines": Whole(),
        "savedmodel_sha256": Text(),
        "tokenizer": OneOf(contract.TOKENIZERS),
        "line": Text(),
    }
)
_FOLDER_INFO = Object({**_INFO.required, "shards": ListOf(Object({"name": record_folder.SHARD_NAME}))})


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
        raise InputError("vectors", expected, f"{reason(error)}: {vectors}") from None
    try:
        info = file.attrs.get(INFO_ATTRIBUTE)
        if not isinstance(info, (str, bytes)):
            raise InputError("vectors", expected, f"another program's: {vectors}")
        return file, json_file.parse(info, _INFO, str(vectors), parameter="vectors")
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
    info = json_file.read(folder / record_folder.INFO_FILE, _FOLDER_INFO, parameter="folder")
    shards = [str(folder / shard["name"]) for shard in info["shards"]]
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
