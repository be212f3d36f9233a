"""The list of a SavedModel's files, with sizes and SHA-256: written on export, compared on opening.

It reveals damaged and lost files. It does not protect against an attacker, who can change the list too.
"""

import hashlib
import pathlib

import msgspec

from elmo_tf.errors import InputError
from elmo_tf.files import intact, json_file
from elmo_tf.files.json_file import Count
from elmo_tf.published import card
from elmo_tf.savedmodel import contract


class Listed(msgspec.Struct, frozen=True):
    """A file in the list."""

    bytes: Count
    sha256: str


def write(folder: pathlib.Path) -> None:
    """Writes the list of all files in `folder` but the card, which people may edit."""
    listed = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _sha256(folder / name)} for name in _names(folder)
    }
    path = folder / contract.CHECKSUMS_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json_file.dumps(listed, indent=2) + "\n", "utf-8")


def check(savedmodel: pathlib.Path, thorough: bool = False) -> dict[str, Listed]:
    """Compares the files in a SavedModel's folder with the list, and returns it, by each file's path in the folder.

    Args:
        savedmodel: the version's folder.
        thorough: whether to compare checksums, not only sizes.

    Raises:
        InputError: if there is no list, or naming the first file that is missing or damaged.
    """
    file = savedmodel / contract.CHECKSUMS_FILE
    if not file.exists():
        raise InputError(str(savedmodel), f"not an export of elmo-tf: it has no {contract.CHECKSUMS_FILE}")
    listed = json_file.read(file, dict[str, Listed])
    names = _names(savedmodel)
    for name in names:
        intact.check_regular(savedmodel / name)
    for name, about in listed.items():
        if name not in names:  # so that no listed name leads out of the folder
            raise InputError(str(savedmodel), f"{name} is missing")
        path = savedmodel / name
        if (size := path.stat().st_size) != about.bytes:
            raise InputError(str(path), f"damaged: {size:,} bytes, not {about.bytes:,}")
        if thorough and _sha256(path) != about.sha256:
            raise InputError(str(path), f"damaged: its SHA-256 is not that of {contract.CHECKSUMS_FILE}")
    return listed


def check_unlisted(savedmodel: pathlib.Path, listed: dict[str, Listed]) -> None:
    """Raises `InputError`, naming the first one, if a SavedModel's folder has files that are not in the list."""
    if unlisted := [name for name in _names(savedmodel) if name not in listed]:
        raise InputError(str(savedmodel), f"{unlisted[0]} is not listed in {contract.CHECKSUMS_FILE}")


def _names(folder: pathlib.Path) -> list[str]:
    """Returns the sorted paths of all files in the folder, relative to it, except the list and the card."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in names if name not in (contract.CHECKSUMS_FILE, card.FILE))


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
