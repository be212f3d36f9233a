"""Where the layer's network can come from: an exported SavedModel, a workdir, published files."""

import json
import os
import pathlib
from collections.abc import Sequence

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import trackable_object_graph_pb2

from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.errors import InputError, renamed
from elmo_tf.published import weights as published_weights
from elmo_tf.savedmodel import checksums, opening, stored_weights
from elmo_tf.training import checkpoints

# A folder, options.json with weights.hdf5, or sizes alone, for weights that are loaded later.
Source = str | os.PathLike | Sequence[str | os.PathLike] | config_lib.ModelConfig

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # of a TensorFlow checkpoint: what is called how
_EXPECTED = "a SavedModel, a workdir, a folder of options.json and weights.hdf5, or the pair of these two files"


def load(source: Source) -> BiLM:
    """Returns the network of `source`, without a softmax.

    Raises:
        InputError: if `source` is none of what it can be, or damaged.
    """
    if isinstance(source, config_lib.ModelConfig):
        return BiLM(source)
    if not isinstance(source, str | os.PathLike):
        if not isinstance(source, Sequence) or len(source) != 2:
            raise InputError(f"source: expected {_EXPECTED}, found {source!r}")
        return _from_published(*source)
    folder = pathlib.Path(source)
    if checkpoints.exists(folder):
        return _without_softmax(checkpoints.open_workdir(folder, "source").trained_bilm("source"))
    if (folder / published_weights.OPTIONS_FILE).is_file():
        return _from_published(folder / published_weights.OPTIONS_FILE, folder / published_weights.WEIGHTS_FILE)
    try:
        version = checksums.find_version(folder)
    except InputError:
        raise InputError(f"source: expected {_EXPECTED}, found none of them: {source}") from None
    with renamed(savedmodel="source"):
        return _from_savedmodel(opening.check(version, verify_checksums=True))


def _from_published(options: str | os.PathLike, weights_file: str | os.PathLike) -> BiLM:
    try:
        return published_weights.load(options, weights_file)[1]
    except InputError as error:
        raise InputError(f"source: {error}") from None


def _from_savedmodel(folder: pathlib.Path) -> BiLM:
    """Reads the configuration from the assets, and the weights by the names they have in the SavedModel.

    From its checkpoint alone: loading the graph takes a thousand times as long.
    """
    try:
        bilm = BiLM(config_lib.from_dict(json.loads((folder / "assets" / "config.json").read_text("utf-8"))).model)
        reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(_OBJECT_GRAPH))
        keys = {one.full_name: one.checkpoint_key for node in graph.nodes for one in node.attributes}
        stored_weights.assign(bilm, {name: reader.get_tensor(key) for name, key in keys.items()})
    except KeyError as error:
        raise InputError(f"source: expected the variable {error} in a SavedModel, found none: {folder}") from None
    except (OSError, ValueError, DecodeError, tf.errors.OpError) as error:
        raise InputError(f"source: expected a SavedModel of `elmo-tf export`, found {error}: {folder}") from None
    return bilm


def _without_softmax(bilm: BiLM) -> BiLM:
    if bilm.softmax is None:
        return bilm
    copy = BiLM(bilm.config)
    values = {variable.path: variable for variable in bilm.variables}
    for variable in copy.variables:
        variable.assign(values[variable.path])
    return copy
