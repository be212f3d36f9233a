"""Elementwise work in one pass over memory."""

import functools
from collections.abc import Callable

import tensorflow as tf


def fused(function: Callable) -> Callable:
    """Has XLA compile `function`, of tensors of fixed shapes and Python values, where there is no GPU.

    On a CPU, what arrays larger than its caches cost is reading and writing them, which each operation by itself does
    anew. A GPU has the bandwidth, and XLA there needs libraries that not every installation has.
    """

    @functools.wraps(function)
    def call(*arguments):
        return _compiled(function)(*arguments)

    return call


@functools.cache
def _compiled(function: Callable) -> Callable:
    return tf.function(function, jit_compile=not tf.config.list_physical_devices("GPU"), autograph=False)
