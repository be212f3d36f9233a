"""An initializer of LSTM kernels: an orthogonal matrix for each gate."""

from collections.abc import Callable

import keras
import tensorflow as tf


def orthogonal_blocks(units: int) -> Callable[..., tf.Tensor]:
    """Returns an initializer of kernels whose blocks of `units` columns are orthogonal matrices."""

    def initial(shape, dtype=None):
        blocks = [keras.initializers.Orthogonal()((shape[0], units), dtype) for _ in range(shape[1] // units)]
        return tf.concat(blocks, 1)

    return initial
