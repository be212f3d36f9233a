"""The projected LSTM with clipping and explicit states."""

from typing import Any

import keras
import tensorflow as tf

from elmo_tf.model.kernels import lstmp_packed, lstmp_training
from elmo_tf.model.kernels.lstmp_packed import pack
from elmo_tf.model.operations import Clips


@keras.saving.register_keras_serializable("elmo_tf")
class LSTMP(keras.layers.Layer):
    """A long short-term memory whose output is projected, and fed back projected (LSTMP).

    Gate columns i, j, f, o; kernel rows input, then recurrent. 1 is added to the forget gate at run time. The cell is
    clipped before the output gate uses it. The projection has no bias; its result is clipped, too. Padding on the right
    never reaches a real position.

    Args:
        units: cells.
        projection_dim: width of output and recurrent state; equal to `units`: no projection (and no `proj_clip`).
        cell_clip: the cell is clipped to +-this; None: no clipping.
        proj_clip: the projection is clipped to +-this; None: no clipping.
        product_dtype: dtype of the matrix products; gates, state and output are float32.

    Call arguments:
        inputs: float32 `(batch, time, input_dim)`.
        initial_state: the pair cell float32 `(batch, units)`, recurrent float32 `(batch, projection_dim)`.
        training: whether gradients will be computed: faster, with more memory. Changes no value.

    Returns:
        outputs float32 `(batch, time, projection_dim)` and the final state, a pair like `initial_state`.

    Reference:
        Sak et al. 2014, "Long Short-Term Memory Based Recurrent Neural Network Architectures"; TensorFlow 1's
        `tf.nn.rnn_cell.LSTMCell`, as bilm-tf uses it.
    """

    def __init__(
        self,
        units: int,
        projection_dim: int,
        cell_clip: float | None = 3.0,
        proj_clip: float | None = 3.0,
        product_dtype: str = "float32",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.proj_clip = proj_clip
        self.product_dtype = product_dtype

    def build(self, input_shape):
        rows = input_shape[-1] + self.projection_dim
        self.kernel = self.add_weight(name="kernel", shape=(rows, 4 * self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(4 * self.units,), initializer="zeros")
        self.projection_kernel = None
        if self.projection_dim != self.units:
            shape = (self.units, self.projection_dim)
            self.projection_kernel = self.add_weight(shape, "glorot_uniform", name="projection_kernel")

    def call(self, inputs, initial_state, training=False):
        clips = Clips(self.cell_clip, self.proj_clip)
        if training:
            weights = map(tf.convert_to_tensor, self.weights)
            return lstmp_training.run(clips, self.product_dtype, inputs, *initial_state, *weights)
        batch_size, num_steps, input_dim = tf.unstack(tf.shape(inputs))
        packed = tf.reshape(tf.transpose(inputs, (1, 0, 2)), (num_steps * batch_size, input_dim))
        packing = pack(tf.fill((batch_size,), num_steps))
        outputs, final = lstmp_packed.run(self.kernels(), clips, packed, packing, tuple(initial_state))
        outputs = tf.reshape(outputs, (num_steps, batch_size, self.projection_dim))
        return tf.transpose(outputs, (1, 0, 2)), final

    def kernels(self, dtype: str | None = None) -> lstmp_packed.Kernels:
        """Returns the weights in the layout of inference; `dtype` is the products' by default."""
        return lstmp_packed.kernels(*map(tf.convert_to_tensor, self.weights), dtype=dtype or self.product_dtype)

    def assign_kernels(self, kernels: lstmp_packed.Kernels) -> None:
        """Sets the weights to those of float32 kernels."""
        values = lstmp_packed.unpacked(kernels, self.kernel.shape[0] - self.projection_dim)
        for variable, value in zip(self.weights, values, strict=True):
            variable.assign(value)
