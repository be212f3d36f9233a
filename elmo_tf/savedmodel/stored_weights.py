"""The network's weights as a SavedModel stores them, in the layout of inference: in float32, bfloat16 or int8."""

import pathlib
import uuid

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
# In less than float32, the last row of a matrix of this name, the bias, is stored in float32 under the other name.
_FROM_INPUT, _BIAS = "/from_input", "/bias"
# What the rows of an int8 matrix are multiplied by is stored under its name and this.
_SCALE = "/scale"
_LARGEST = 127  # int8 that is stored


class StoredWeights:
    """A biLM's weights as variables to save, and the biLM's work done with them.

    With `bfloat16` or `int8`, matrices are stored in it and become float32 when the model is loaded: half or a quarter
    of the size on disk, and the speed of float32 on any CPU. Vectors, such as biases, stay float32. In int8 each row,
    along the last axis, has a scale of its own: its largest number becomes 127 or -127.

    Args:
        bilm: the network; its own variables are stored where they can be.
        precision: one of `contract.PRECISIONS`.
    """

    def __init__(self, bilm: PackedBiLM, precision: str):
        self._bilm = bilm
        self.by_name: dict[str, tf.Variable] = {}
        self.expanded: list[Expanded] = []
        self._replaced: list[tuple[keras.Variable, tf.Variable | Expanded]] = []
        for name, variable in relative_names(bilm).items():
            if precision != "float32" and len(variable.shape) >= 2:
                self._store_expanded(name, variable, precision)
            elif variable.value.trainable:
                # A Keras layer around a SavedModel trains what was marked as trainable when it was saved.
                self.by_name[name] = tf.Variable(variable, trainable=False)
                self._replaced.append((variable, self.by_name[name]))
            else:
                self.by_name[name] = variable.value

    def _store_expanded(self, name: str, variable: keras.Variable, precision: str) -> None:
        matrix, bias, scale = tf.convert_to_tensor(variable), None, None
        if name.endswith(_FROM_INPUT):
            bias = tf.Variable(matrix[-1], trainable=False)
            matrix = matrix[:-1]
            self.by_name[name.replace(_FROM_INPUT, _BIAS)] = bias
        if precision == "int8":
            largest = tf.reduce_max(tf.abs(matrix), -1, keepdims=True)
            scale = tf.Variable(tf.where(largest > 0, largest / _LARGEST, 1.0), trainable=False)
            self.by_name[name + _SCALE] = scale
            matrix = tf.round(matrix / scale)
        self.by_name[name] = tf.Variable(tf.cast(matrix, precision), trainable=False)
        self.expanded.append(Expanded(self.by_name[name], bias, scale))
        self._replaced.append((variable, self.expanded[-1]))

    def embed(self, char_ids: tf.Tensor, initial_states: States) -> tuple[tf.Tensor, tf.Tensor, States]:
        """Returns what `PackedBiLM.embed` does."""
        with keras.StatelessScope([(variable, _read(stored)) for variable, stored in self._replaced]):
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
    keys = {name: node.attributes[0].checkpoint_key for name, node in by_name.items()}
    values = {name: reader.get_tensor(key).astype(np.float32) for name, key in keys.items()}
    for name in [name.removesuffix(_SCALE) for name in values if name.endswith(_SCALE)]:
        values[name] *= values.pop(name + _SCALE)
    for name in [name for name in values if name.endswith(_FROM_INPUT)]:
        bias = values.pop(name.replace(_FROM_INPUT, _BIAS), None)
        if bias is not None:
            if bias.shape != values[name].shape[1:]:
                raise ValueError(f"{name} of shape {values[name].shape} with a bias of shape {bias.shape}")
            values[name] = np.vstack([values[name], bias])
    return values


class Expanded(tf.saved_model.experimental.TrackableResource):
    """A float32 matrix that is made from a bfloat16 or int8 variable when a SavedModel is loaded.

    Args:
        matrix: the variable, `(rows, columns)`; with more axes if there is no bias.
        bias: float32 `(columns,)`, another row; None: there is none.
        scale: float32, of the matrix's shape, but 1 along the last axis: what the numbers are multiplied by; None: 1.
    """

    def __init__(self, matrix: tf.Variable, bias: tf.Variable | None = None, scale: tf.Variable | None = None):
        super().__init__()
        self._matrix, self._bias, self._scale = matrix, bias, scale
        self._shape = tf.TensorShape((matrix.shape[0] + 1, matrix.shape[1])) if bias is not None else matrix.shape
        # No other model that the process may load has a resource of this name.
        self._name = str(uuid.uuid4())
        self._initialize()

    def read(self) -> tf.Tensor:
        """Returns the matrix."""
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(value, self._shape)

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=self._shape, shared_name=self._name, container="")

    def _initialize(self):
        expanded = tf.cast(self._matrix, tf.float32)
        if self._scale is not None:
            expanded *= self._scale
        if self._bias is not None:
            expanded = tf.concat([expanded, self._bias[None]], 0)
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=expanded)


def _read(stored: tf.Variable | Expanded) -> tf.Tensor:
    return stored.read() if isinstance(stored, Expanded) else tf.convert_to_tensor(stored)
