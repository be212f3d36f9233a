"""The versions of an exported model."""

import os
import pathlib

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import contract


def versions(savedmodel: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders of a model's versions, the newest last."""
    inner = [path for path in savedmodel.iterdir() if path.name.isdecimal()] if savedmodel.is_dir() else []
    return sorted(inner, key=lambda path: int(path.name))


def newest(savedmodel: str | os.PathLike) -> pathlib.Path | None:
    """Returns `savedmodel` if it is a version's folder, or else the newest version in it; None: there is none."""
    folder = pathlib.Path(savedmodel)
    if (folder / contract.GRAPH_FILE).is_file():
        return folder
    last = (versions(folder) or [folder])[-1]
    return last if (last / contract.GRAPH_FILE).is_file() else None


def find_version(savedmodel: str | os.PathLike) -> pathlib.Path:
    """Returns what `newest` does; `InputError` if there is none."""
    if (found := newest(savedmodel)) is None:
        raise InputError("savedmodel", f"a folder with {contract.GRAPH_FILE}", f"none: {savedmodel}")
    return found
