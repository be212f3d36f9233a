"""Layers that compute in float32 whatever dtype policy a program has set for its own."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def float32_policy() -> Iterator[None]:
    """Makes float32 layers in the block, under any global dtype policy of the program."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
