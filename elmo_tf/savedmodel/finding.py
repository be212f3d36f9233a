"""The versions of an exported model."""

import os
import pathlib
from collections.abc import Iterable

from elmo_tf.savedmodel import contract


def newest_of(names: Iterable[str]) -> str | None:
    """Returns the highest version among names of files and folders; None if none is a number."""
    return max((name for name in names if name.isdecimal()), key=int, default=None)


def newest(savedmodel: str | os.PathLike) -> pathlib.Path | None:
    """Returns `savedmodel` if it is a version's folder, or else the newest version in it; None if there is none."""
    folder = pathlib.Path(savedmodel)
    if not (folder / contract.GRAPH_FILE).is_file():
        folder /= (newest_of(os.listdir(folder)) if folder.is_dir() else None) or ""
    return folder if (folder / contract.GRAPH_FILE).is_file() else None
