"""The weights of published files as NumPy arrays: a table of names, and their shapes; no TensorFlow."""

import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import h5py
import numpy as np

from elmo_tf.config import ModelConfig
from elmo_tf.errors import InputError
from elmo_tf.files import hdf5_file
from elmo_tf.published.models import SOFTMAX_FILE, VOCABULARY_FILE, WEIGHTS_FILE

if TYPE_CHECKING:
    from elmo_tf.text.vocabulary import Softmax

Shapes = dict[str, tuple[int, ...]]

# Our name of a weight, the HDF5 dataset, bilm-tf's variable below `lm/`; {n} is the number of a convolution or layer.
_NAMES = (
    ("char_cnn/embedding", "char_embed", "char_embed"),
    ("char_cnn/kernel_{n}", "CNN/W_cnn_{n}", "CNN/W_cnn_{n}"),
    ("char_cnn/bias_{n}", "CNN/b_cnn_{n}", "CNN/b_cnn_{n}"),
    # bilm-tf calls the gate that lets the transform through `carry`.
    ("char_cnn/highway_{n}/gate_kernel", "CNN_high_{n}/W_carry", "CNN_high_{n}/W_carry"),
    ("char_cnn/highway_{n}/gate_bias", "CNN_high_{n}/b_carry", "CNN_high_{n}/b_carry"),
    ("char_cnn/highway_{n}/transform_kernel", "CNN_high_{n}/W_transform", "CNN_high_{n}/W_transform"),
    ("char_cnn/highway_{n}/transform_bias", "CNN_high_{n}/b_transform", "CNN_high_{n}/b_transform"),
    ("char_cnn/projection/kernel", "CNN_proj/W_proj", "CNN_proj/W_proj"),
    ("char_cnn/projection/bias", "CNN_proj/b_proj", "CNN_proj/b_proj"),
    ("forward_{n}/kernel", "RNN_0/{cell}/W_0", "RNN_0/{cell}/kernel"),
    ("forward_{n}/bias", "RNN_0/{cell}/B", "RNN_0/{cell}/bias"),
    ("forward_{n}/projection_kernel", "RNN_0/{cell}/W_P_0", "RNN_0/{cell}/projection/kernel"),
    ("backward_{n}/kernel", "RNN_1/{cell}/W_0", "RNN_1/{cell}/kernel"),
    ("backward_{n}/bias", "RNN_1/{cell}/B", "RNN_1/{cell}/bias"),
    ("backward_{n}/projection_kernel", "RNN_1/{cell}/W_P_0", "RNN_1/{cell}/projection/kernel"),
    ("softmax/kernel", None, "softmax/W"),
    ("softmax/bias", None, "softmax/b"),
)
_HDF5_CELL, _CHECKPOINT_CELL = "RNN/MultiRNNCell/Cell{n}/LSTMCell", "rnn/multi_rnn_cell/cell_{n}/lstm_cell"
# bilm-tf trains and dumps a single layer without its number, but reads it with the number.
_SINGLE_LAYER = (
    ("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/"),
    ("/rnn/lstm_cell/", "/rnn/multi_rnn_cell/cell_0/lstm_cell/"),
)
# The reference convolves with conv2d over a single row: its kernels have a leading axis of 1.
_CONVOLUTION = re.compile(r"char_cnn/kernel_\d+")
_PUBLISHED_NAMES = {name: published for name, *published in _NAMES}


class Names(NamedTuple):
    """A weight's names and shape in published files."""

    hdf5: str | None  # None: not in that file
    checkpoint: str
    shape: tuple[int, ...]


def published_names(name: str, shape: tuple[int, ...]) -> Names:
    """Returns the published names and shape of a weight, given our name and its shape here."""
    number = re.search(r"_(\d+)(/|$)", name)
    templates = _PUBLISHED_NAMES[re.sub(r"_\d+(/|$)", r"_{n}\1", name)]
    hdf5, checkpoint = (
        template and template.replace("{cell}", cell).replace("{n}", number[1] if number else "")
        for template, cell in zip(templates, (_HDF5_CELL, _CHECKPOINT_CELL), strict=True)
    )
    return Names(hdf5, f"lm/{checkpoint}", (1, *shape) if _CONVOLUTION.fullmatch(name) else tuple(shape))


class StoredArrays(NamedTuple):
    """Named arrays in a file."""

    path: str | os.PathLike  # the file, or the prefix of several files
    shapes: Shapes
    read: Callable[[str], np.ndarray]  # returns the array of that name


def stored_names(source: StoredArrays, expected: Shapes) -> dict[str, str]:
    """Returns the name in the source of each expected array, after comparing all names and shapes.

    The names of a single LSTM layer may lack its number.

    Raises:
        InputError: naming the first array that is missing, unknown or of another shape.
    """
    path, stored = str(source.path), {_numbered(name): name for name in source.shapes}
    for name, shape in expected.items():
        if name not in stored:
            raise InputError(path, f"the array {name} of shape {shape} is missing")
        if (stored_shape := source.shapes[stored[name]]) != shape:
            raise InputError(path, f"{stored[name]} of shape {shape}", stored_shape)
    for name, shape in source.shapes.items():
        if _numbered(name) not in expected or stored[_numbered(name)] != name:
            raise InputError(path, f"the options ask for no array {name} {shape}")
    return stored


def read_all(source: StoredArrays, expected: Shapes) -> Iterator[tuple[str, np.ndarray]]:
    """Yields every expected array with its name, float32, array by array.

    Raises:
        InputError: as `stored_names`, before the first array is read, or naming one that is not of finite floats.
    """
    path, stored = str(source.path), stored_names(source, expected)
    for name in expected:
        values = source.read(stored[name])
        if values.dtype.kind != "f":
            raise InputError(path, f"{stored[name]} has {values.dtype}, not floats")
        with np.errstate(over="ignore"):
            values = values.astype(np.float32, copy=False)
        if wrong := np.size(values) - np.count_nonzero(np.isfinite(values)):
            raise InputError(path, f"{stored[name]} has numbers that are not finite: {wrong}")
        yield name, values


def read_hdf5(path: str | os.PathLike, expected: Shapes) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays of an HDF5 file; raises `InputError` as `read_all` and `hdf5_file.open_file`."""
    with hdf5_file.open_file(path) as file:
        yield from read_all(StoredArrays(path, _shapes(file), lambda name: file[name][()]), expected)


def read_weights(path: str | os.PathLike, config: ModelConfig) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the weights of a `weights.hdf5` with our names and in our shapes; raises as `read_hdf5`.

    All shapes are compared before the first array is read.
    """
    shape_of = config.weight_shapes()
    stored = {name: published_names(name, shape) for name, shape in shape_of.items()}
    our_name = {names.hdf5: name for name, names in stored.items() if names.hdf5}
    for name, values in read_hdf5(path, {names.hdf5: names.shape for names in stored.values() if names.hdf5}):
        yield our_name[name], values.reshape(shape_of[our_name[name]])


def write(folder: pathlib.Path, weights: Iterable[tuple[str, np.ndarray]], softmax: "Softmax | None" = None) -> None:
    """Writes `weights.hdf5` in a folder, from arrays by our names; with a softmax, also it and its words."""
    with h5py.File(folder / WEIGHTS_FILE, "w") as file:
        for name, values in weights:
            stored = published_names(name, values.shape)
            if stored.hdf5 is not None:
                file[stored.hdf5] = values.reshape(stored.shape)
    if softmax is not None:
        (folder / VOCABULARY_FILE).write_bytes(softmax.vocabulary.to_bytes())
        with h5py.File(folder / SOFTMAX_FILE, "w") as file:
            file["kernel"], file["bias"] = softmax.kernel, softmax.bias


def read_softmax(weights: str | os.PathLike, config: ModelConfig) -> "Softmax | None":
    """Returns the softmax and its words stored beside a `weights.hdf5`; None if there are none.

    Raises:
        InputError: if a file is damaged, or the two do not match each other or the network.
    """
    folder = pathlib.Path(weights).parent
    has_files = (folder / SOFTMAX_FILE).is_file() and (folder / VOCABULARY_FILE).is_file()
    if not has_files or pathlib.Path(weights).name != WEIGHTS_FILE:
        return None
    from elmo_tf.text import vocabulary as vocabulary_lib  # noqa: PLC0415 - vectors do not need it

    words = vocabulary_lib.read(folder / VOCABULARY_FILE)
    expected = {"kernel": (len(words), config.lstm.projection_dim), "bias": (len(words),)}
    return vocabulary_lib.Softmax(**dict(read_hdf5(folder / SOFTMAX_FILE, expected)), vocabulary=words)


def _shapes(file: h5py.File) -> Shapes:
    """Returns the shape of each dataset in the file, by name."""
    shape_of = {}

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Dataset):
            shape_of[str(name)] = item.shape  # a name that is not UTF-8 is bytes

    file.visititems(visit)
    return shape_of


def _numbered(name: str) -> str:
    for single, numbered in _SINGLE_LAYER:
        name = name.replace(single, numbered)
    return name
