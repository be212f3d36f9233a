"""Layers that are float32 under any dtype policy of the program."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def float32_policy() -> Iterator[None]:
    """Layers made in the block are float32, whatever Keras's global dtype policy is."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
