"""Functions compiled by XLA on CPUs."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def fused(function: Callable) -> Callable:
    """Compiles `function`, of tensors of fixed shapes and Python values, with XLA where there is no GPU.

    On a CPU, elementwise operations on large arrays are memory-bound; fusing makes one pass. A GPU has the bandwidth,
    and XLA there needs libraries that not every installation has.
    """

    @functools.cache
    def compiled() -> Callable:  # at the first call: listing devices initializes TensorFlow
        return tf.function(function, jit_compile=not tf.config.list_physical_devices("GPU"), autograph=False)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled()(*arguments)

    return call
