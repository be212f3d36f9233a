"""The folder of a task's run: locked while it trains, and refused if it holds something else."""

import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from elmo_tf.errors import InputError
from elmo_tf.files import json_file, lock
from elmo_tf.tasks import trained


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Makes a folder and locks it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), f"cannot be made ({error.strerror})") from None
    with lock.locked(folder):
        yield


def check(folder: pathlib.Path, config: dict[str, Any]) -> None:
    """Checks that a folder is empty or has an earlier state of the same run."""
    path = folder / trained.CONFIG
    if not path.exists():
        if _names(folder):
            raise InputError(str(folder), "has files that are not of a run; choose a new folder")
        return
    wanted, stored = _flat(config), _flat(json_file.read(path, dict[str, Any]))
    for name, value in wanted.items():
        # Files may have moved: their checksums count.
        if stored.get(name) == value or (name.startswith(("data.", "reading.")) and name != "data.fraction"):
            continue
        raise InputError(str(folder), f"has a run with another {name} ({stored.get(name)}); choose a new folder")


def check_several(folder: pathlib.Path) -> None:
    """Checks that a folder is empty or has only the runs of several seeds."""
    names = _names(folder)
    runs = {name for name in names if re.fullmatch(r"seed_\d+", name)}
    if names - runs - {trained.SCORES} or (trained.SCORES in names and not runs):
        raise InputError(str(folder), "has files that are not of a run with several seeds; choose a new folder")


def _names(folder: pathlib.Path) -> set[str]:
    """Returns the names in a folder, without locks and half-written files, which begin with a dot."""
    return {path.name for path in folder.iterdir() if path.name[0] != "."} if folder.is_dir() else set()


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
