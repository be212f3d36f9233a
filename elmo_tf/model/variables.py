"""Variables of layers: their names in a biLM, TensorFlow's tracking of them, and the scopes they are created in."""

import concurrent.futures
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import keras
import tensorflow as tf

_T = TypeVar("_T")
DIRECTIONS = ("forward", "backward")


def relative_names(bilm: Any) -> dict[str, keras.Variable]:
    """Returns the weights of a `PlainBiLM` or `BiLM` by name, in the order of its `weights`.

    Examples: `char_cnn/embedding`, `char_cnn/highway_0/gate_kernel`, `forward_1/projection_kernel`, `softmax/bias`.
    """
    layers = {"char_cnn": bilm.char_cnn}
    for inner in (*bilm.char_cnn.highways, bilm.char_cnn.projection):
        if inner is not None:
            layers[f"char_cnn/{inner.name}"] = inner
    for direction, stack in zip(DIRECTIONS, bilm.lstms, strict=True):
        layers |= {f"{direction}_{number}": layer for number, layer in enumerate(stack)}
    if getattr(bilm, "softmax", None) is not None:
        layers["softmax"] = bilm.softmax
    # The variables of `char_cnn` include those of its inner layers, whose names replace them.
    names = {id(v): f"{prefix}/{v.name}" for prefix, layer in layers.items() for v in layer.variables}
    return {names[id(variable)]: variable for variable in bilm.weights}


class Tracked:
    """First base class of layers that keep layers or variables in lists or dictionaries.

    Keras finds them there, and names the weights in a `.keras` file by these attributes. TensorFlow's own tracking does
    not: without this base, `tf.train.Checkpoint` leaves them out silently, and `tf.saved_model.save` fails.
    """

    collections: tuple[str, ...] = ()  # the attributes with lists, dictionaries, or lists of lists

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)  # type: ignore[misc]
        for attribute in self.collections:
            children.pop(attribute, None)  # Keras gives a SavedModel the list itself, which TensorFlow may not take
            children |= _flattened(attribute, getattr(self, attribute, ()))
        return children


def _flattened(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the items of nested lists and dictionaries, each with a name such as `lstms_0_1`."""
    if not isinstance(value, list | tuple | dict):
        yield name, value
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _flattened(f"{name}_{key}", part)


@contextlib.contextmanager
def float32_policy() -> Iterator[None]:
    """Layers made in the block are float32, whatever Keras's global dtype policy is."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


def outside_scopes(make: Callable[[], _T]) -> _T:
    """Returns `make()`, called outside the caller's TensorFlow and Keras scopes.

    So its variables have the same names, dtypes and values in another layer's `build`, in a traced function, and under
    a `keras.name_scope` or dtype policy. A new thread has none of these scopes; strategy and device are passed on.
    """
    scope = tf.distribute.get_strategy().scope() if tf.distribute.has_strategy() else contextlib.nullcontext()
    device = tf.zeros(()).device if tf.executing_eagerly() and not tf.distribute.has_strategy() else None

    def run() -> _T:
        keras.config.set_dtype_policy("float32")
        with scope, tf.device(device):
            return make()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()
