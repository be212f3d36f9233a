"""Where the layer's network can come from: an exported SavedModel, a workdir, published files."""

import os
import pathlib
from collections.abc import Sequence

import tensorflow as tf
from google.protobuf.message import DecodeError

from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.bilm.names import relative_names
from elmo_tf.bilm.packed import PackedBiLM
from elmo_tf.errors import InputError, is_about_memory, reason, renamed
from elmo_tf.published import fetching, models
from elmo_tf.published import weights as published_weights
from elmo_tf.savedmodel import assets, finding, opening, stored_weights
from elmo_tf.training import checkpoints

# A folder, a published model's name, options.json with weights.hdf5, sizes alone, or a network.
Source = str | os.PathLike | Sequence[str | os.PathLike] | config_lib.ModelConfig | BiLM | PackedBiLM

_EXPECTED = (
    "a SavedModel, a workdir, a folder of options.json and weights.hdf5, the pair of these two files, or "
    f"{models.expected_names()}"
)


def load(source: Source, trainable: bool) -> BiLM | PackedBiLM:
    """Returns the network of `source`, without a softmax: a `BiLM` to train, or else a `PackedBiLM`.

    Raises:
        InputError: if `source` is none of what it can be, or damaged.
    """
    network = source if isinstance(source, BiLM | PackedBiLM) else _load(source)
    is_packed = isinstance(network, PackedBiLM)
    if trainable:
        return BiLM.from_packed(network) if is_packed else network
    return network if is_packed else PackedBiLM.of(network)


def unset(config: config_lib.ModelConfig, trainable: bool) -> BiLM | PackedBiLM:
    """Returns a network of that size whose weights are loaded later."""
    return BiLM(config) if trainable else PackedBiLM(config)


def _load(source: Source) -> BiLM | PackedBiLM:
    if isinstance(source, config_lib.ModelConfig):
        return BiLM(source)
    if not isinstance(source, str | os.PathLike):
        if not isinstance(source, Sequence) or len(source) != 2:
            raise InputError("source", _EXPECTED, repr(source))
        return _from_published(*source)
    folder = pathlib.Path(source)
    if checkpoints.exists(folder):
        with renamed(workdir="source"):
            return checkpoints.open_workdir(folder).trained_bilm(with_softmax=False)
    if (folder / models.OPTIONS_FILE).is_file():
        return _from_published(folder / models.OPTIONS_FILE, folder / models.WEIGHTS_FILE)
    try:
        version = finding.find_version(folder)
    except InputError:
        if not models.is_name(source):
            raise InputError("source", _EXPECTED, f"none of them: {source}{models.suggested(source)}") from None
        # Its files say all that is needed here: no SavedModel has to be made of them.
        with renamed(name="source"):
            return _from_published(*fetching.files(models.find(str(source))))
    with renamed(savedmodel="source"):
        return _from_savedmodel(opening.check(version, verify_checksums=True))


def _from_published(options: str | os.PathLike, weights_file: str | os.PathLike) -> BiLM:
    try:
        return published_weights.load(options, weights_file)[1]
    except InputError as error:
        raise InputError("source", error.expected, error.found) from None


def _from_savedmodel(folder: pathlib.Path) -> PackedBiLM:
    """Reads the configuration from the assets, and the weights by the names they have in the SavedModel."""
    try:
        bilm = PackedBiLM(assets.read_config(folder))
        stored = stored_weights.read_stored(folder)
        for name, variable in relative_names(bilm).items():
            value = stored.pop(name)
            if value.shape != variable.shape:
                raise ValueError(f"{name} of shape {value.shape}, not {variable.shape}")
            variable.assign(value)
    except KeyError as error:
        raise InputError("source", f"the variable {error} in a SavedModel", f"none: {folder}") from None
    except (OSError, ValueError, DecodeError, tf.errors.OpError) as error:
        if is_about_memory(error):
            raise
        found = f"{reason(error)}: {folder}"
        raise InputError("source", "a SavedModel of `elmo-tf export` of this version, undamaged", found) from None
    return bilm
