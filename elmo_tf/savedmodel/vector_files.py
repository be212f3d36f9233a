"""The two forms in which `elmo-tf embed` leaves the vectors of a text, and how to read them.

HDF5: dataset `str(line)` for each line, `(layers, tokens, dim)` or `(tokens, dim)`, as bilm-tf and AllenNLP write them;
the attribute `elmo_tf` of the file holds `info`.

TFRecord: a folder of shards with `info.json` and the marker `_SUCCESS`; a `tf.train.Example` a line with `line`,
`tokens`, `shape`, `dtype` and `vectors`, the values as little-endian bytes.
"""

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

import h5py

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder

if TYPE_CHECKING:
    import tensorflow as tf

FORMAT_VERSION = "vectors-1"
INFO_ATTRIBUTE = "elmo_tf"


def open_hdf5(path: str | os.PathLike, argument: str = "--vectors") -> tuple[h5py.File, dict[str, Any]]:
    """Opens vectors in HDF5 for reading; returns the file and its `info`.

    Raises:
        InputError: naming `argument`, if `elmo-tf embed` has not written it.
    """
    expected = f"{argument}: expected an HDF5 file of `elmo-tf embed`"
    if not os.path.isfile(path):
        raise InputError(f"{expected}, found {'a folder' if os.path.isdir(path) else 'none'}: {path}")
    try:
        file = h5py.File(path)
    except OSError as error:
        raise InputError(f"{expected}, found {error}: {path}") from None
    if INFO_ATTRIBUTE not in file.attrs:
        file.close()
        raise InputError(f"{expected}, found one of something else: {path}")
    return file, json.loads(file.attrs[INFO_ATTRIBUTE])


def read_tfrecords(folder: str | os.PathLike) -> "tf.data.Dataset":
    """Returns the vectors of a finished folder, a line at a time, in the text's order.

    Each element is a dictionary: `line` int64, `tokens` string `(tokens,)`, `vectors` float32 or float16
    `(layers, tokens, dim)` or `(tokens, dim)`.

    Raises:
        InputError: if the folder is not finished, or holds something else.
    """
    import tensorflow as tf  # noqa: PLC0415 - the rest of this module is for those who do without

    folder = pathlib.Path(folder)
    if not (folder / record_folder.MARKER_FILE).is_file():
        raise InputError(f"folder: expected a finished folder of `elmo-tf embed`, found none: {folder}")
    info = json.loads((folder / record_folder.INFO_FILE).read_bytes())
    if info["format_version"] != FORMAT_VERSION:
        raise InputError(f"folder: expected the format {FORMAT_VERSION}, found {info['format_version']}: {folder}")
    dtype = tf.dtypes.as_dtype(info["dtype"])
    shards = [str(folder / shard["name"]) for shard in info["shards"]]
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
