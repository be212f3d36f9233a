"""Computes a result in blocks of rows, so that memory holds the intermediate values of one block."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def in_blocks(
    function: Callable[..., tf.Tensor], inputs: Sequence[tf.Tensor], rows: tf.Tensor, block: int
) -> tf.Tensor:
    """Returns `rows` rows, at least 1, which `function` computes `block` at a time.

    The backward pass computes each block again: memory holds the values of one block, whatever the number of rows.

    `function` is called with the first row of a block, the row after its last (int32 scalars) and `inputs`, float
    tensors, which have gradients; it returns float32 `(block's rows, width)`. It uses no variables, and its
    random numbers depend on its arguments alone.
    """
    blocks = (rows + block - 1) // block

    def ends(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return number * block, tf.minimum((number + 1) * block, rows)

    @tf.custom_gradient
    def computed(*tensors: tf.Tensor) -> Any:
        def forward(number, parts):
            return number + 1, parts.write(number, function(*ends(number), *tensors))

        parts = tf.TensorArray(tensors[0].dtype, blocks, infer_shape=False)
        options = {"parallel_iterations": 1}
        result = tf.while_loop(lambda number, _: number < blocks, forward, (0, parts), **options)[1].concat()

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            def backward(number, *sums):
                first, last = ends(number)
                # Inside the loop, a tape records only tensors that were created there.
                own = [tf.identity(tensor) for tensor in tensors]
                with tf.GradientTape() as tape:
                    tape.watch(own)
                    part = function(first, last, *own)
                zero = tf.UnconnectedGradients.ZERO
                more = tape.gradient(part, own, upstream[first:last], unconnected_gradients=zero)
                return number + 1, *(total + increment for total, increment in zip(sums, more, strict=True))

            zeros = [tf.zeros_like(tensor) for tensor in tensors]
            return tf.while_loop(lambda number, *_: number < blocks, backward, (0, *zeros), **options)[1:]

        return result, gradient

    return computed(*map(tf.convert_to_tensor, inputs))
