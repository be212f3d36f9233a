"""Scopes in which layers are made: their variables do not depend on the program's dtype policy or name scopes."""

import concurrent.futures
import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import keras
import tensorflow as tf

_Made = TypeVar("_Made")


@contextlib.contextmanager
def float32_policy() -> Iterator[None]:
    """Layers made in the block are float32, whatever Keras's global dtype policy is."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


def outside_scopes(make: Callable[[], _Made]) -> _Made:
    """Returns `make()`, called outside the caller's TensorFlow and Keras scopes.

    So its variables have the same names, dtypes and values in another layer's `build`, in a traced function, and under
    a `keras.name_scope` or dtype policy. A new thread has none of these scopes; strategy and device are passed on.
    """
    scope = tf.distribute.get_strategy().scope() if tf.distribute.has_strategy() else contextlib.nullcontext()
    device = tf.zeros(()).device if tf.executing_eagerly() and not tf.distribute.has_strategy() else None

    def run() -> _Made:
        keras.config.set_dtype_policy("float32")
        with scope, tf.device(device):
            return make()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()
