"""Weights in the files published for ELMo, and in bilm-tf's checkpoints, <-> BiLM: one table of names."""

import hashlib
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import h5py
import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.errors import InputError, renamed
from elmo_tf.files.staging import new_folder
from elmo_tf.published.options import read_options, write_options

OPTIONS_FILE = "options.json"
WEIGHTS_FILE = "weights.hdf5"

# BiLM's variable, the HDF5 file's dataset, bilm-tf's variable below `lm/`; {n} numbers convolutions and layers.
_NAMES = (
    ("char_cnn/embedding", "char_embed", "char_embed"),
    ("char_cnn/kernel_{n}", "CNN/W_cnn_{n}", "CNN/W_cnn_{n}"),
    ("char_cnn/bias_{n}", "CNN/b_cnn_{n}", "CNN/b_cnn_{n}"),
    # What they call carry is the gate that lets the transform through.
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
# bilm-tf names a single layer without its number when it trains and dumps it, but with it when it reads a file.
_SINGLE_LAYER = (
    ("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/"),
    ("/rnn/lstm_cell/", "/rnn/multi_rnn_cell/cell_0/lstm_cell/"),
)
# The reference convolves with conv2d over one row: its kernels have a leading axis of 1.
_CONVOLUTION = re.compile(r"char_cnn/kernel_\d+")


class Names(NamedTuple):
    """What one variable is called elsewhere."""

    variable: keras.Variable
    hdf5: str | None  # None: not in that file
    checkpoint: str
    shape: tuple[int, ...]  # there


def names(bilm: BiLM) -> list[Names]:
    """Returns the published names and shape of each of the network's variables."""
    table = {ours: theirs for ours, *theirs in _NAMES}
    found = []
    for variable in bilm.trainable_variables:
        number = re.search(r"_(\d+)(/|$)", variable.path)
        template = re.sub(r"_\d+(/|$)", r"_{n}\1", variable.path)
        hdf5, checkpoint = (
            name and name.replace("{cell}", cell).replace("{n}", number[1] if number else "")
            for name, cell in zip(table[template], (_HDF5_CELL, _CHECKPOINT_CELL), strict=True)
        )
        shape = tuple(variable.shape)
        if _CONVOLUTION.fullmatch(variable.path):
            shape = (1, *shape)
        found.append(Names(variable, hdf5, f"lm/{checkpoint}", shape))
    return found


class Source(NamedTuple):
    """A set of named arrays that weights can come from.

    Attributes:
        label: what errors call it.
        shapes: of the arrays, by name.
        read: returns an array, by name.
    """

    label: str
    shapes: dict[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]


def assign(source: Source, targets: dict[str, tuple[tf.Variable | keras.Variable, tuple[int, ...]]]) -> None:
    """Reads every array of `source` into its variable, one at a time, once names and shapes are known to be right.

    Args:
        source: the arrays; those of a single LSTM layer may go without its number.
        targets: variable and expected shape, by name.

    Raises:
        InputError: naming the first array that is missing, too much, misshapen, or not of finite floats.
    """
    stored = {_numbered(name): name for name in source.shapes}
    for name, (_, shape) in targets.items():
        if name not in stored:
            raise InputError(f"{source.label}: expected {name} of shape {shape}, found nothing of that name")
        if source.shapes[stored[name]] != shape:
            found = source.shapes[stored[name]]
            raise InputError(f"{source.label}: expected {stored[name]} of shape {shape}, found {found}")
    for name, shape in source.shapes.items():
        if _numbered(name) not in targets or stored[_numbered(name)] != name:
            raise InputError(f"{source.label}: expected nothing that the options do not ask for, found {name} {shape}")
    for name, (variable, _) in targets.items():
        values = source.read(stored[name])
        if values.dtype.kind != "f":
            raise InputError(f"{source.label}: expected {stored[name]} of floats, found {values.dtype}")
        with np.errstate(over="ignore"):
            values = values.astype(np.float32, copy=False)
        wrong = np.size(values) - np.count_nonzero(np.isfinite(values))
        if wrong:
            raise InputError(f"{source.label}: expected {stored[name]} of finite numbers, found {wrong} that are not")
        variable.assign(values.reshape(variable.shape))


def read_weights(path: str | os.PathLike, bilm: BiLM, argument: str = "--weights") -> None:
    """Reads a published `weights.hdf5` into `bilm`, which may have a softmax: the file has none, it stays as it is.

    Raises:
        InputError: if the file is not there or damaged, or does not fit the network (`assign`).
    """
    targets = {name.hdf5: (name.variable, name.shape) for name in names(bilm) if name.hdf5 is not None}
    if not pathlib.Path(path).is_file():
        raise InputError(f"{argument}: expected an HDF5 file of weights, found no such file: {path}")
    expected = f"{argument} {path}: expected a whole HDF5 file"
    with guarded(h5py.File, expected)(path, "r") as file:
        shapes = guarded(_shapes, expected)(file)
        assign(Source(f"{argument} {path}", shapes, guarded(lambda name: file[name][()], expected)), targets)


def guarded(function: Callable, expected: str) -> Callable:
    """Returns `function`, a library's, with every exception an `InputError`: each damage to a file has its own type."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Exception as error:
            raise InputError(f"{expected}, found {' '.join(str(error).split())}") from None

    return call


def write_weights(bilm: BiLM, path: str | os.PathLike) -> None:
    """Writes the network, without its softmax, as a `weights.hdf5` that bilm-tf and AllenNLP read."""
    with h5py.File(path, "w") as file:
        for name in names(bilm):
            if name.hdf5 is not None:
                values = keras.ops.convert_to_numpy(name.variable)
                file.create_dataset(name.hdf5, data=values.reshape(name.shape), dtype="float32")


def load(options: str | os.PathLike, weights: str | os.PathLike) -> tuple[config_lib.Config, BiLM]:
    """Returns the configuration and the network of a published pair of files, without a softmax.

    Raises:
        InputError: if a file is damaged or the two do not fit each other.
    """
    config = read_options(options)
    if not pathlib.Path(weights).is_file():
        raise InputError(f"--weights: expected an HDF5 file of weights, found no such file: {weights}")
    bilm = BiLM(config.model)
    read_weights(weights, bilm)
    return config, bilm


def dump(bilm: BiLM, output: str | os.PathLike, argument: str = "--output") -> pathlib.Path:
    """Writes `options.json` and `weights.hdf5` to a new folder `output`, whole or not at all.

    Raises:
        InputError: naming `argument`, if something stands there.
    """
    with renamed(path=argument), new_folder(output) as folder:
        write_options(bilm.config, folder / OPTIONS_FILE)
        write_weights(bilm, folder / WEIGHTS_FILE)
    return pathlib.Path(output)


def provenance(options: str | os.PathLike, weights: str | os.PathLike) -> dict[str, Any]:
    """Returns what an export tells about a published pair of files: names and checksums."""
    described = {}
    for kind, path in (("options", options), ("weights", weights)):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        described[kind] = {"name": pathlib.Path(path).name, "sha256": digest.hexdigest()}
    return described


def _shapes(file: h5py.File) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each dataset in the file, by name."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[str(name)] = item.shape  # bytes when it is not UTF-8

    file.visititems(visit)
    return found


def _numbered(name: str) -> str:
    for single, numbered in _SINGLE_LAYER:
        name = name.replace(single, numbered)
    return name
