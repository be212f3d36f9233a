"""The newest version of an exported model."""

import os
import pathlib

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import contract


def newest(savedmodel: str | os.PathLike) -> pathlib.Path | None:
    """Returns `savedmodel` if it is a version's folder, or else the newest version in it; None: there is none."""
    folder = pathlib.Path(savedmodel)
    if (folder / contract.GRAPH_FILE).is_file():
        return folder
    versions = [inner for inner in folder.iterdir() if inner.name.isdecimal()] if folder.is_dir() else []
    last = max(versions, key=lambda inner: int(inner.name), default=folder)
    return last if (last / contract.GRAPH_FILE).is_file() else None


def find_version(savedmodel: str | os.PathLike) -> pathlib.Path:
    """Returns what `newest` does; `InputError` if there is none."""
    if (found := newest(savedmodel)) is None:
        raise InputError("savedmodel", f"a folder with {contract.GRAPH_FILE}", f"none: {savedmodel}")
    return found
