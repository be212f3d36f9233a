"""The list of a SavedModel's files with sizes and SHA-256: written by an export, compared when the model is opened.

It finds damaged and lost files. It does not protect from an attacker, who can change the list as well.
"""

import hashlib
import json
import pathlib
from typing import Any

from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import MapOf, Object, Text, Whole
from elmo_tf.savedmodel import contract

_LIST = MapOf(Object({"bytes": Whole(), "sha256": Text()}))


def write(folder: pathlib.Path) -> None:
    """Writes the list of all files in `folder`."""
    listed = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _sha256(folder / name)} for name in names(folder)
    }
    path = folder / contract.CHECKSUMS_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(listed, indent=2) + "\n", "utf-8")


def read(savedmodel: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Returns the size in `bytes` (int) and the `sha256` (str) of each exported file, by its path in the folder.

    Raises:
        InputError: if there is no list, or the file is not such a list.
    """
    file = savedmodel / contract.CHECKSUMS_FILE
    if not file.exists():
        expected = f"the file {contract.CHECKSUMS_FILE} of `elmo-tf export`"
        raise InputError("savedmodel", expected, f"none in {savedmodel}")
    listed = json_file.read(file, _LIST, parameter="savedmodel")
    if contract.GRAPH_FILE not in listed:
        raise InputError("savedmodel", f"the key {contract.GRAPH_FILE}", f"none: {file}")
    return listed


def check(savedmodel: pathlib.Path, thorough: bool = False) -> None:
    """Compares the files in a SavedModel's folder with the list.

    Args:
        savedmodel: the version's folder.
        thorough: whether to read all files, compare their checksums and refuse files that are not listed; otherwise
            only sizes are compared.

    Raises:
        InputError: naming the first file that is missing, damaged or not listed.
    """
    listed = read(savedmodel)
    for name, about in listed.items():
        path = savedmodel / name
        if not path.is_file():
            raise InputError("savedmodel", f"the file {name}", f"none in {savedmodel}")
        if (size := path.stat().st_size) != about["bytes"]:
            raise InputError("savedmodel", f"{about['bytes']} bytes in {name}", f"{size}: {savedmodel}")
    if not thorough:
        return
    for name, about in listed.items():
        if (digest := _sha256(savedmodel / name)) != about["sha256"]:
            raise InputError("savedmodel", f"{name} with SHA-256 {about['sha256']}", f"{digest}: {savedmodel}")
    unknown = [name for name in names(savedmodel) if name not in listed]
    if unknown:
        expected = f"only files that are listed in {contract.CHECKSUMS_FILE}"
        raise InputError("savedmodel", expected, f"{unknown[0]} in {savedmodel}")


def names(folder: pathlib.Path) -> list[str]:
    """Returns the sorted paths, relative to `folder`, of all files in it except the list."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in found if name != contract.CHECKSUMS_FILE)


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
