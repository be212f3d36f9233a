"""The network's weights as a SavedModel keeps them: in the layout of inference and the precision asked for."""

import uuid
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.bilm.model import DIRECTIONS, BiLM
from elmo_tf.bilm.packed import States
from elmo_tf.layers import lstmp_packed


class Weights:
    """Copies of a biLM's weights, and the biLM's work done with them.

    With `bfloat16`, matrices are stored in it and become float32 when the model is loaded: half the size on disk, and
    the speed of float32 on any CPU. Vectors, such as biases, stay float32.

    Args:
        bilm: the network.
        precision: one of `contract.PRECISIONS`.
    """

    def __init__(self, bilm: BiLM, precision: str):
        self._bilm = bilm
        self._precision = precision
        self.stored: list[tf.Variable] = []  # what is on disk
        self.expanded: list[Expanded] = []
        self._kernels = tuple(
            tuple(
                kernels._make(map(self._keep, kernels, _names(direction, number)))
                for number, kernels in enumerate(layers)
            )
            for direction, layers in zip(DIRECTIONS, bilm.kernels(precision), strict=True)
        )
        self._encoder = [(variable, self._keep(variable.value, variable.path)) for variable in bilm.char_cnn.variables]

    def embed(self, char_ids: tf.Tensor, initial_states: States):
        """Does what `BiLM.embed` does."""
        kernels = tf.nest.map_structure(_read, self._kernels)
        with keras.StatelessScope([(variable, _read(kept)) for variable, kept in self._encoder]):
            return self._bilm.embed(char_ids, initial_states, kernels)

    def _keep(self, weight: tf.Tensor | None, name: str) -> "tf.Variable | Expanded | None":
        if weight is None:
            return None
        if self._precision == "float32" or weight.shape.rank < 2:
            self.stored.append(tf.Variable(tf.cast(weight, tf.float32), trainable=False, name=name))
            return self.stored[-1]
        self.stored.append(tf.Variable(tf.cast(weight, tf.bfloat16), trainable=False, name=name))
        self.expanded.append(Expanded(self.stored[-1]))
        return self.expanded[-1]


def assign(bilm: BiLM, stored: Mapping[str, np.ndarray]) -> None:
    """Gives `bilm` the weights that `Weights` stored, by their names.

    Raises:
        KeyError: if one is missing, which is the argument.
        ValueError: if one has another shape.
    """
    for variable in bilm.char_cnn.variables:
        variable.assign(tf.cast(stored[variable.path], tf.float32))
    for direction, layers in zip(DIRECTIONS, bilm.lstms, strict=True):
        for number, layer in enumerate(layers):
            names = _names(direction, number)[: len(layer.weights)]  # without a projection, one weight less
            kernels = lstmp_packed.Kernels(*(tf.cast(stored[name], tf.float32) for name in names))
            input_dim = layer.kernel.shape[0] - layer.projection_dim
            for variable, value in zip(layer.weights, lstmp_packed.originals(kernels, input_dim), strict=False):
                variable.assign(value)


def _names(direction: str, number: int) -> list[str]:
    """Returns what a layer's `Kernels` are called."""
    return [f"{direction}_{number}/{field}" for field in lstmp_packed.Kernels._fields]


class Expanded(tf.saved_model.experimental.TrackableResource):
    """A float32 tensor that is made of a bfloat16 variable when a SavedModel is loaded.

    Args:
        stored: the variable.
    """

    def __init__(self, stored: tf.Variable):
        super().__init__()
        self._stored = stored
        # Of all models that one process may load, no other's.
        self._name = str(uuid.uuid4())
        self._initialize()

    def read(self) -> tf.Tensor:
        """Returns the tensor."""
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(value, self._stored.shape)

    def _create_resource(self):
        shape = self._stored.shape
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=self._name, container="")

    def _initialize(self):
        expanded = tf.cast(self._stored, tf.float32)
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=expanded)


def _read(kept: tf.Variable | Expanded | None) -> tf.Tensor | None:
    if kept is None:
        return None
    return kept.read() if isinstance(kept, Expanded) else tf.convert_to_tensor(kept)
