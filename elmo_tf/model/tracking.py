"""What TensorFlow tracks of a layer: also the layers and variables that Keras keeps in lists and dictionaries."""

from collections.abc import Iterator
from typing import Any


class Tracked:
    """The first base of a layer that keeps layers or variables in lists or dictionaries.

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
    """Yields what is in nested lists and dictionaries, and a name for each: `lstms_0_1`."""
    if not isinstance(value, list | tuple | dict):
        yield name, value
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _flattened(f"{name}_{key}", part)
