"""Computes a result in blocks of rows, so that memory holds the intermediate values of one block."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def in_blocks(
    function: Callable[..., tf.Tensor],
    constants: Any,
    inputs: Sequence[tf.Tensor],
    rows: tf.Tensor,
    block: int,
) -> tf.Tensor:
    """Returns `rows` rows, at least 1, which `function` computes `block` at a time.

    The backward pass computes each block again: memory holds the values of one block, whatever the number of rows.

    Args:
        function: called with the first row of a block, the row after its last (int32 scalars), `constants` and
            `inputs`; returns float32 `(block's rows, width)`. Its random numbers depend on its arguments alone.
            Hashable and without tensors, because TensorFlow keeps it for good; equal ones share a graph.
        constants: a structure of tensors that have no gradients.
        inputs: float tensors, which have gradients.
        rows: int32 scalar.
        block: rows of a block.
    """
    return _in_blocks(function, block, rows, constants, *map(tf.convert_to_tensor, inputs))


# A graph of its own: TensorFlow keeps the graph of a custom gradient for good, so it must not hold a network's weights.
@tf.function(autograph=False, reduce_retracing=True)
def _in_blocks(function, block, rows, constants, *inputs):
    blocks = (rows + block - 1) // block

    def compute(number: tf.Tensor, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        return function(number * block, tf.minimum((number + 1) * block, rows), constants, *tensors)

    @tf.custom_gradient
    def computed(*tensors: tf.Tensor) -> Any:
        def forward(number, parts):
            return number + 1, parts.write(number, compute(number, tensors))

        parts = tf.TensorArray(tensors[0].dtype, blocks, infer_shape=False)
        options = {"parallel_iterations": 1}
        result = tf.while_loop(lambda number, _: number < blocks, forward, (0, parts), **options)[1].concat()

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            def backward(number, *sums):
                # Inside the loop, a tape records only tensors that were created there.
                own = [tf.identity(tensor) for tensor in tensors]
                with tf.GradientTape() as tape:
                    tape.watch(own)
                    part = compute(number, own)
                zero = tf.UnconnectedGradients.ZERO
                rows_of_part = upstream[number * block : (number + 1) * block]
                more = tape.gradient(part, own, rows_of_part, unconnected_gradients=zero)
                return number + 1, *(total + increment for total, increment in zip(sums, more, strict=True))

            zeros = [tf.zeros_like(tensor) for tensor in tensors]
            return tf.while_loop(lambda number, *_: number < blocks, backward, (0, *zeros), **options)[1:]

        return result, gradient

    return computed(*inputs)
