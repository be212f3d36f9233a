"""The network's weights as variables of a SavedModel, and reading them back without its graph."""

import pathlib

import keras
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import trackable_object_graph_pb2

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, is_about_memory, reason
from elmo_tf.model.packed_bilm import PackedBiLM
from elmo_tf.model.sampled_softmax import SampledSoftmax
from elmo_tf.model.variables import float32_policy, relative_names
from elmo_tf.savedmodel import contract

ATTRIBUTE = "weights"  # of the object that is saved: the variables by name
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # of a TensorFlow checkpoint: the objects' names


class StoredWeights:
    """The weights of a biLM, and of its softmax if there is any, as variables to save, none of them trainable.

    A Keras layer around a SavedModel trains what was trainable when it was saved, so trainable variables are copied;
    the others are saved themselves.
    """

    def __init__(self, bilm: PackedBiLM, softmax: SampledSoftmax | None = None):
        self._variables = relative_names(bilm)
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


def read_network(folder: pathlib.Path, config: config_lib.ModelConfig) -> PackedBiLM:
    """Returns the network of a SavedModel in `folder`, with its weights.

    Loading the graph would take a thousand times as long.

    Raises:
        InputError: if the weights are damaged, or not those of a network of these sizes.
    """
    bilm = PackedBiLM(config)
    _read(folder, relative_names(bilm))
    return bilm


def read_softmax(folder: pathlib.Path, config: config_lib.ModelConfig, vocab_size: int) -> SampledSoftmax:
    """Returns the softmax of a SavedModel in `folder`; raises as `read_network` does."""
    with float32_policy():
        softmax = SampledSoftmax(vocab_size)
    softmax.build((None, config.lstm.projection_dim))
    _read(folder, {f"softmax/{variable.name}": variable for variable in softmax.variables})
    return softmax


def _read(folder: pathlib.Path, variables: dict[str, keras.Variable]) -> None:
    """Assigns to variables the values of these names in the SavedModel."""
    try:
        reader = tf.train.load_checkpoint(str(folder / contract.VARIABLES_PREFIX))
        nodes = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(_OBJECT_GRAPH)).nodes
        root = {child.local_name: child.node_id for child in nodes[0].children}
        by_name = {child.local_name: nodes[child.node_id] for child in nodes[root[ATTRIBUTE]].children}
        for name, variable in variables.items():
            value = reader.get_tensor(by_name[name].attributes[0].checkpoint_key)
            if (value.shape, value.dtype) != (variable.shape, variable.dtype):
                stored, expected = f"{value.dtype} {value.shape}", f"{variable.dtype} {variable.shape}"
                raise ValueError(f"{name} is {stored}, not {expected}")
            variable.assign(value)
    except KeyError as error:
        raise InputError(str(folder), f"the SavedModel has no variable {error}") from None
    except (OSError, ValueError, DecodeError, tf.errors.OpError) as error:
        if is_about_memory(error):
            raise
        raise InputError(str(folder), f"the SavedModel is damaged: {reason(error)}") from None
