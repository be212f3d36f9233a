"""Output folders and files that appear finished or not at all."""

import contextlib
import os
import pathlib
import shutil
import uuid
from collections.abc import Iterator

from elmo_tf.errors import InputError


def check_absent(path: str | os.PathLike, argument: str) -> None:
    """Raises `InputError`, naming `argument`, unless nothing or an empty folder stands at `path`."""
    place = os.path.abspath(path)
    if os.path.isdir(place) and not os.listdir(place):
        return
    if os.path.lexists(place):
        raise InputError(argument, "a folder that does not exist yet", f"one: {path}")


@contextlib.contextmanager
def new_folder(path: str | os.PathLike, argument: str) -> Iterator[pathlib.Path]:
    """Gives one folder to write in; see `new_folders`. Raises `InputError`, naming `argument`, if `path` is in use."""
    check_absent(path, argument)
    with new_folders({argument: path}) as waiting:
        yield waiting[argument]


@contextlib.contextmanager
def new_folders(outputs: dict[str, str | os.PathLike]) -> Iterator[dict[str, pathlib.Path]]:
    """Gives folders to write in, and moves them to where they belong once the block has ended without an exception.

    After an exception, an interrupt included, neither the folders nor parents made for them are left.

    Args:
        outputs: paths of the folders to make, by name; none lies inside another.

    Yields:
        The absolute paths of the folders to write in meanwhile, by name. Each is next to its output, so moving it is a
        rename.

    Raises:
        InputError: if a folder cannot be made there.
    """
    finals = {name: pathlib.Path(os.path.abspath(path)) for name, path in outputs.items()}
    unique = uuid.uuid4().hex[:12]  # on every machine that sees this disk
    waiting = {name: path.with_name(f".{path.name}.incomplete-{unique}") for name, path in finals.items()}
    made: list[pathlib.Path] = []
    try:
        for path in waiting.values():
            missing = [parent for parent in path.parents if not parent.exists()]
            try:
                path.mkdir(parents=True)
            except OSError as error:
                raise InputError(f"cannot make the folder {path.parent}: {error.strerror}") from None
            finally:
                made.extend(reversed(missing))
        yield waiting
        _move(waiting, finals)
    except BaseException:
        for path in waiting.values():
            shutil.rmtree(path, ignore_errors=True)
        for parent in reversed(made):
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _move(waiting: dict[str, pathlib.Path], finals: dict[str, pathlib.Path]) -> None:
    """Renames all folders, or none."""
    moved = []
    try:
        for name, path in waiting.items():
            path.rename(finals[name])
            moved.append(name)
    except BaseException:
        for name in moved:
            finals[name].rename(waiting[name])
        raise


def write_file(path: str | os.PathLike, content: bytes) -> None:
    """Writes a file, or replaces one, in one go: after a crash it holds `content` or what it held before."""
    place = pathlib.Path(path)
    staged = place.with_name(f".{place.name}.incomplete")
    try:
        staged.write_bytes(content)
        sync(staged)
        os.replace(staged, place)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    sync(place.parent)


def sync(path: str | os.PathLike) -> None:
    """Waits until a file's content, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
