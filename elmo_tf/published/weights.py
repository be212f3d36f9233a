"""Weights in the files published for ELMo, and in bilm-tf's checkpoints, <-> BiLM: one table of names."""

import contextlib
import hashlib
import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import h5py
import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, is_about_memory, reason
from elmo_tf.files.staging import new_folder
from elmo_tf.model.bilm import BiLM
from elmo_tf.model.float32 import float32_policy
from elmo_tf.model.names import relative_names
from elmo_tf.model.sampled_softmax import SampledSoftmax
from elmo_tf.published.models import OPTIONS_FILE, SOFTMAX_FILE, VOCABULARY_FILE, WEIGHTS_FILE
from elmo_tf.published.options import read_options, write_options
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.text.vocabulary import Vocabulary

# BiLM's variable (`bilm.names`), the HDF5 file's dataset, bilm-tf's variable below `lm/`; {n} numbers convolutions and
# layers.
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
# The reference convolves with conv2d over one row: its kernels have a leading axis of 1.
_CONVOLUTION = re.compile(r"char_cnn/kernel_\d+")


class Names(NamedTuple):
    """A variable's published names and shape."""

    variable: keras.Variable
    hdf5: str | None  # None: not in that file
    checkpoint: str
    shape: tuple[int, ...]


def names(bilm: BiLM) -> list[Names]:
    """Returns the published names and shapes of the network's variables, in the order of `bilm.trainable_variables`."""
    table = {ours: theirs for ours, *theirs in _NAMES}
    found = []
    for ours, variable in relative_names(bilm).items():
        number = re.search(r"_(\d+)(/|$)", ours)
        template = re.sub(r"_\d+(/|$)", r"_{n}\1", ours)
        hdf5, checkpoint = (
            name and name.replace("{cell}", cell).replace("{n}", number[1] if number else "")
            for name, cell in zip(table[template], (_HDF5_CELL, _CHECKPOINT_CELL), strict=True)
        )
        shape = (1, *variable.shape) if _CONVOLUTION.fullmatch(ours) else tuple(variable.shape)
        found.append(Names(variable, hdf5, f"lm/{checkpoint}", shape))
    return found


class Source(NamedTuple):
    """Named arrays in a file."""

    path: str | os.PathLike  # the file, or the prefix of several files
    shapes: dict[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]  # returns the array of that name


# Variable and expected shape, by name.
Targets = dict[str, tuple[tf.Variable | keras.Variable, tuple[int, ...]]]


def assign(source: Source, targets: Targets) -> None:
    """Reads every array of `source` into its variable, one at a time, after comparing all names and shapes.

    The names of a single LSTM layer may lack its number.

    Raises:
        InputError: naming the first array that is missing, unknown, of another shape, or not of finite floats.
    """
    path = str(source.path)
    stored = {_numbered(name): name for name in source.shapes}
    for name, (_, shape) in targets.items():
        if name not in stored:
            raise InputError(path, f"{name} of shape {shape}", "nothing of that name")
        if (found := source.shapes[stored[name]]) != shape:
            raise InputError(path, f"{stored[name]} of shape {shape}", found)
    for name, shape in source.shapes.items():
        if _numbered(name) not in targets or stored[_numbered(name)] != name:
            raise InputError(path, "only arrays that the options ask for", f"{name} {shape}")
    for name, (variable, _) in targets.items():
        values = source.read(stored[name])
        if values.dtype.kind != "f":
            raise InputError(path, f"{stored[name]} of floats", values.dtype)
        with np.errstate(over="ignore"):
            values = values.astype(np.float32, copy=False)
        if wrong := np.size(values) - np.count_nonzero(np.isfinite(values)):
            raise InputError(path, f"{stored[name]} of finite numbers", f"{wrong} that are not")
        variable.assign(values.reshape(variable.shape))


def _read(path: str | os.PathLike, targets: Targets) -> None:
    """Reads an HDF5 file into its variables; raises `InputError` as `assign`, or if the file is damaged."""
    with guarded("a whole HDF5 file", path), h5py.File(path) as file:
        assign(Source(path, _shapes(file), lambda name: file[name][()]), targets)


@contextlib.contextmanager
def guarded(expected: str, source: str | os.PathLike) -> Iterator[None]:
    """Turns exceptions in the block, which reads the file `source`, into `InputError`, except those about memory.

    Libraries raise exceptions of many types for damaged files.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or is_about_memory(error):
            raise
        raise InputError(str(source), expected, reason(error)) from None


def load(options: str | os.PathLike, weights: str | os.PathLike) -> tuple[config_lib.Config, BiLM]:
    """Returns the configuration and the network, without a softmax, of a published pair of files.

    Raises:
        InputError: if a file is missing or damaged, or the two do not fit each other (`assign`).
    """
    config = read_options(options)
    if not pathlib.Path(weights).is_file():  # before the network is built, which may take long
        raise InputError(str(weights), "an HDF5 file of weights", "no such file")
    bilm = BiLM(config.model)
    _read(weights, {name.hdf5: (name.variable, name.shape) for name in names(bilm) if name.hdf5 is not None})
    return config, bilm


def load_softmax(
    weights: str | os.PathLike, config: config_lib.ModelConfig
) -> tuple[SampledSoftmax, Vocabulary] | None:
    """Returns the softmax and its words that are beside a `weights.hdf5`, or None if there are none.

    Raises:
        InputError: if a file is damaged, or the two do not fit each other or the network.
    """
    folder = pathlib.Path(weights).parent
    has_files = (folder / SOFTMAX_FILE).is_file() and (folder / VOCABULARY_FILE).is_file()
    if not has_files or pathlib.Path(weights).name != WEIGHTS_FILE:
        return None
    words = vocabulary_lib.from_bytes((folder / VOCABULARY_FILE).read_bytes(), str(folder / VOCABULARY_FILE))
    with float32_policy():
        softmax = SampledSoftmax(len(words))
    softmax.build((None, config.lstm.projection_dim))
    _read(folder / SOFTMAX_FILE, {variable.name: (variable, tuple(variable.shape)) for variable in softmax.variables})
    return softmax, words


def dump(bilm: BiLM, output: str | os.PathLike, vocabulary: Vocabulary | None = None) -> pathlib.Path:
    """Writes `options.json` and `weights.hdf5`, for bilm-tf and AllenNLP, to the new folder `output`, all or nothing.

    With a `vocabulary`, the network's softmax is written to `softmax.hdf5`, and its words to `vocab.txt`; other
    programs ignore these files.
    """
    with new_folder(output) as folder:
        write_options(bilm.config, folder / OPTIONS_FILE)
        with h5py.File(folder / WEIGHTS_FILE, "w") as file:
            for name in names(bilm):
                if name.hdf5 is not None:
                    values = keras.ops.convert_to_numpy(name.variable)
                    file.create_dataset(name.hdf5, data=values.reshape(name.shape), dtype="float32")
        if vocabulary is not None:
            (folder / VOCABULARY_FILE).write_bytes(vocabulary.to_bytes())
            with h5py.File(folder / SOFTMAX_FILE, "w") as file:
                for variable in bilm.softmax.variables:
                    file.create_dataset(variable.name, data=keras.ops.convert_to_numpy(variable), dtype="float32")
    return pathlib.Path(output)


def provenance(options: str | os.PathLike, weights: str | os.PathLike) -> dict[str, Any]:
    """Returns the provenance of a published pair of files for an export: names and checksums."""
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
            found[str(name)] = item.shape  # a name that is not UTF-8 is bytes

    file.visititems(visit)
    return found


def _numbered(name: str) -> str:
    for single, numbered in _SINGLE_LAYER:
        name = name.replace(single, numbered)
    return name
