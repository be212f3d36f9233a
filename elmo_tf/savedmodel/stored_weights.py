"""The network's weights as variables of a SavedModel, and reading them back without its graph."""

import pathlib

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from elmo_tf.bilm.names import relative_names
from elmo_tf.bilm.packed import PackedBiLM
from elmo_tf.bilm.walk import States
from elmo_tf.savedmodel import contract

ATTRIBUTE = "weights"  # of the object that is saved: the variables by name
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # of a TensorFlow checkpoint: what is called how


class StoredWeights:
    """A biLM's weights as variables to save, none of them trainable, and the biLM's work done with them.

    A Keras layer around a SavedModel trains what was trainable when it was saved, so trainable variables are copied.

    Args:
        bilm: the network; its own variables are stored where they can be.
    """

    def __init__(self, bilm: PackedBiLM):
        self._bilm = bilm
        self._variables = relative_names(bilm)
        self.by_name: dict[str, tf.Variable] = {
            name: tf.Variable(variable, trainable=False) if variable.value.trainable else variable.value
            for name, variable in self._variables.items()
        }

    def embed(self, char_ids: tf.Tensor, initial_states: States) -> tuple[tf.Tensor, tf.Tensor, States]:
        """Returns what `PackedBiLM.embed` does."""
        values = [(variable, tf.convert_to_tensor(self.by_name[name])) for name, variable in self._variables.items()]
        with keras.StatelessScope(values):
            return self._bilm.embed(char_ids, initial_states)


def read_stored(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns the weights in a SavedModel, float32, by name.

    They are read without loading the graph, which takes a thousand times as long.

    Raises:
        KeyError, OSError, ValueError, DecodeError, tf.errors.OpError: if `StoredWeights` is not part of the model.
    """
    reader = tf.train.load_checkpoint(str(folder / contract.VARIABLES_PREFIX))
    nodes = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(_OBJECT_GRAPH)).nodes
    root = {child.local_name: child.node_id for child in nodes[0].children}
    by_name = {child.local_name: nodes[child.node_id] for child in nodes[root[ATTRIBUTE]].children}
    return {name: reader.get_tensor(node.attributes[0].checkpoint_key) for name, node in by_name.items()}
