"""Gradients of a large batch, computed in parts."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Structure = Any  # nested tuples and lists of tensors


def in_groups(
    compute: Callable[[int | tf.Tensor, Structure], tuple[Structure, Structure]], groups: int, rows: Structure
) -> tuple[Structure, Structure]:
    """Applies `compute` to groups of consecutive batch rows, one group after the other.

    Only one group's activations are in memory at a time.

    Args:
        compute: takes a group's number and rows; returns values to sum over the groups, and values per row.
        groups: number of groups; divides the number of rows.
        rows: tensors whose first dimension is the batch.

    Returns:
        the sums (sparse gradients are concatenated instead), and the values of all rows.
    """
    if groups == 1:
        return compute(0, rows)

    def group(number):
        def piece(value):
            return tf.reshape(value, (groups, value.shape[0] // groups, *value.shape[1:]))[number]

        results, made = compute(number, tf.nest.map_structure(piece, rows))
        flat = tf.nest.flatten(results)
        dense = [value for value in flat if not isinstance(value, tf.IndexedSlices)]
        sparse = [
            part for value in flat if isinstance(value, tf.IndexedSlices) for part in (value.values, value.indices)
        ]
        return (results, made), dense, [*sparse, *tf.nest.flatten(made)]

    def body(number, sums, arrays):
        _, dense, behind = group(number)
        sums = [one + other for one, other in zip(sums, dense, strict=True)]
        return number + 1, sums, [array.write(number, value) for array, value in zip(arrays, behind, strict=True)]

    # The first group is computed before the loop, because its result shows which gradients are sparse.
    (results, made), sums, behind = group(0)
    arrays = [
        tf.TensorArray(value.dtype, groups, infer_shape=False, element_shape=(None, *value.shape[1:])).write(0, value)
        for value in behind
    ]
    _, sums, arrays = tf.while_loop(
        lambda number, *_: number < groups, body, (1, sums, arrays), parallel_iterations=1, maximum_iterations=groups
    )
    sums, behind = iter(sums), iter([array.concat() for array in arrays])

    def joined(result):
        if isinstance(result, tf.IndexedSlices):
            return tf.IndexedSlices(next(behind), next(behind), result.dense_shape)
        return next(sums)

    def all_rows(value):
        return tf.ensure_shape(next(behind), (groups * value.shape[0], *value.shape[1:]))

    return tf.nest.map_structure(joined, results), tf.nest.map_structure(all_rows, made)
