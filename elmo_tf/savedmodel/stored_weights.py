"""The network's weights as variables of a SavedModel, and reading them back without its graph."""

import pathlib
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import trackable_object_graph_pb2

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, is_about_memory, reason
from elmo_tf.model.bilm import SampledSoftmax
from elmo_tf.model.fast import BiLM
from elmo_tf.model.variables import relative_names
from elmo_tf.savedmodel import contract
from elmo_tf.text.vocabulary import Softmax, Vocabulary

# Attributes of the object that is saved: the network's variables by name, and the mix's scalar parameters and gamma.
ATTRIBUTE = "weights"
_MIX = "trainable_variables"
_OLD_LAYOUT = "forward_0/from_input"  # a variable of exports made before LSTMs had one layout of weights
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # of a TensorFlow checkpoint: the objects' names


class StoredWeights:
    """The weights of a biLM, and of the softmax if one is given, as variables to save, none of them trainable.

    A Keras layer around a SavedModel trains what was trainable when it was saved, so trainable variables are copied;
    the others are saved themselves.
    """

    def __init__(self, bilm: BiLM, softmax: SampledSoftmax | None = None):
        names = relative_names(bilm).items()
        self._variables = {name: variable for name, variable in names if not name.startswith("softmax/")}
        if softmax is not None:
            self._variables |= {f"softmax/{variable.name}": variable for variable in softmax.variables}
        self.by_name: dict[str, tf.Variable] = {
            name: tf.Variable(variable, trainable=False) if variable.value.trainable else variable.value
            for name, variable in self._variables.items()
        }

    def scope(self) -> keras.StatelessScope:
        """Returns a scope in which the layers compute with these variables."""
        values = [(variable, tf.convert_to_tensor(self.by_name[name])) for name, variable in self._variables.items()]
        return keras.StatelessScope(values)


def read_weights(folder: pathlib.Path, config: config_lib.ModelConfig) -> dict[str, np.ndarray]:
    """Returns the weights of the network of a SavedModel in `folder`, by the names of a `BiLM`.

    Loading the graph would take a thousand times as long.

    Raises:
        InputError: if the weights are damaged, or not those of a network of these sizes.
    """
    return _read(folder, ATTRIBUTE, config.weight_shapes())


def read_mix(folder: pathlib.Path, num_layers: int) -> tuple[np.ndarray, float]:
    """Returns the scalar parameters and gamma of a SavedModel in `folder`; raises as `read_weights` does."""
    scalar_parameters, gamma = _read(folder, _MIX, {"0": (num_layers,), "1": ()}).values()
    return scalar_parameters, float(gamma)


def read_softmax(folder: pathlib.Path, config: config_lib.ModelConfig, vocabulary: Vocabulary) -> Softmax:
    """Returns the softmax over these words of a SavedModel in `folder`; raises as `read_weights` does."""
    size = len(vocabulary)
    shapes = {"softmax/kernel": (size, config.lstm.projection_dim), "softmax/bias": (size,)}
    kernel, bias = _read(folder, ATTRIBUTE, shapes).values()
    return Softmax(kernel, bias, vocabulary)


def _read(folder: pathlib.Path, attribute: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Returns the variables of these names and shapes among those of an attribute of the object that was saved."""
    values, by_name = {}, {}
    try:
        reader = tf.train.load_checkpoint(str(folder / contract.VARIABLES_PREFIX))
        nodes = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(_OBJECT_GRAPH)).nodes
        root = {child.local_name: child.node_id for child in nodes[0].children}
        by_name = {child.local_name: nodes[child.node_id] for child in nodes[root[attribute]].children}
        for name, shape in shapes.items():
            value = np.asarray(reader.get_tensor(by_name[name].attributes[0].checkpoint_key))
            if (value.shape, value.dtype) != (shape, np.float32):
                raise ValueError(f"{name} is {value.dtype} {value.shape}, not float32 {shape}")
            values[name] = value
    except KeyError as error:
        problem = f"the SavedModel has no variable {error}"
        if _OLD_LAYOUT in by_name:
            problem = "exported by an earlier version of elmo_tf, whose LSTMs had another layout; export it again"
        raise InputError(str(folder), problem) from None
    except (OSError, ValueError, DecodeError, tf.errors.OpError) as error:
        if is_about_memory(error):
            raise
        raise InputError(str(folder), f"the SavedModel is damaged: {reason(error)}") from None
    return values
