"""The list of a SavedModel's files, with sizes and SHA-256: written by an export, compared when the model is opened.

It finds damage and lost files, not an adversary: who can change a file can change the list.
"""

import hashlib
import json
import os
import pathlib

from elmo_tf.errors import InputError

FILE = "assets.extra/checksums.json"  # TensorFlow leaves this folder to whoever exports
GRAPH_FILE = "saved_model.pb"  # what makes a folder a SavedModel


def find_version(path: str | os.PathLike, argument: str = "--savedmodel") -> pathlib.Path:
    """Returns the folder of a SavedModel: `path` itself, or the newest version in it.

    Raises:
        InputError: naming `argument`, if it is neither.
    """
    folder = pathlib.Path(path)
    if (folder / GRAPH_FILE).is_file():
        return folder
    versions = [inner for inner in folder.iterdir() if inner.name.isdecimal()] if folder.is_dir() else []
    newest = max(versions, key=lambda inner: int(inner.name), default=folder)
    if not (newest / GRAPH_FILE).is_file():
        raise InputError(f"{argument}: expected a folder with {GRAPH_FILE}, found none: {newest}")
    return newest


def write(folder: pathlib.Path) -> None:
    """Writes the list of all files that are in `folder`."""
    listed = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _sha256(folder / name)} for name in names(folder)
    }
    place = folder / FILE
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(listed, indent=2) + "\n", "utf-8")


def read(folder: pathlib.Path, argument: str = "--savedmodel") -> dict[str, dict[str, int | str]]:
    """Returns the size in `bytes` and the `sha256` of each file that was exported, by its path in `folder`.

    Raises:
        InputError: naming `argument` and the list, if there is none.
    """
    try:
        listed = json.loads((folder / FILE).read_text("utf-8"))
        return {
            str(name): {"bytes": int(about["bytes"]), "sha256": str(about["sha256"])} for name, about in listed.items()
        }
    except FileNotFoundError:
        raise InputError(f"{argument}: expected the file {FILE} of `elmo-tf export`, found none in {folder}") from None
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise InputError(f"{argument}: expected a list of files in {FILE}, found {error!r}: {folder}") from None


def check(folder: pathlib.Path, argument: str = "--savedmodel", thorough: bool = False) -> None:
    """Compares the files that are in `folder` with the list.

    Args:
        thorough: whether to read all files and compare checksums, and to allow no others; else only sizes count.

    Raises:
        InputError: naming `argument` and the first file that is missing, damaged or unknown.
    """
    listed = read(folder, argument)
    for name, about in listed.items():
        path = folder / name
        if not path.is_file():
            raise InputError(f"{argument}: expected the file {name}, found none in {folder}")
        if path.stat().st_size != about["bytes"]:
            expected, found = about["bytes"], path.stat().st_size
            raise InputError(f"{argument}: expected {expected} bytes in {name}, found {found}: {folder}")
    if not thorough:
        return
    for name, about in listed.items():
        if (found := _sha256(folder / name)) != about["sha256"]:
            raise InputError(f"{argument}: expected {name} with SHA-256 {about['sha256']}, found {found}: {folder}")
    unknown = [name for name in names(folder) if name not in listed]
    if unknown:
        raise InputError(f"{argument}: expected only files that are listed in {FILE}, found {unknown[0]} in {folder}")


def names(folder: pathlib.Path) -> list[str]:
    """Returns the paths of all files in `folder` but the list, relative to it, in order."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in found if name != FILE)


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
