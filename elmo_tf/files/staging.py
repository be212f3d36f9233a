"""Output folders and files that appear complete or not at all."""

import contextlib
import errno
import os
import pathlib
import shutil
import uuid
from collections.abc import Iterator

from elmo_tf.errors import InputError


def check_absent(path: str | os.PathLike) -> None:
    """Raises `InputError` unless nothing, or an empty folder, is at `path`."""
    place = os.path.abspath(path)
    if os.path.isdir(place) and not os.listdir(place):
        return
    if os.path.lexists(place):
        raise InputError("path", "a folder that does not exist yet", f"one: {path}")


@contextlib.contextmanager
def new_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yields one folder to write in; see `new_folders`. Raises `InputError` if `path` is in use."""
    check_absent(path)
    with new_folders({"path": path}) as staged:
        yield staged["path"]


@contextlib.contextmanager
def new_folders(outputs: dict[str, str | os.PathLike]) -> Iterator[dict[str, pathlib.Path]]:
    """Yields folders to write in, and moves them to their places when the block ends without an exception.

    After an exception, an interrupt included, neither the folders nor parents made for them remain.

    Args:
        outputs: paths of the folders to make, by the parameter that gave each; none lies inside another.

    Yields:
        The absolute paths of the folders to write in meanwhile, by parameter. Each is next to its output, so that
        moving it is a rename.

    Raises:
        InputError: naming the parameter, if a folder cannot be made there.
    """
    finals = {name: pathlib.Path(os.path.abspath(path)) for name, path in outputs.items()}
    # Unique on every machine that sees this disk.
    unique = uuid.uuid4().hex[:12]
    staged = {name: path.with_name(f".{path.name}.incomplete-{unique}") for name, path in finals.items()}
    made: list[pathlib.Path] = []
    try:
        for name, path in staged.items():
            missing = [parent for parent in path.parents if not parent.exists()]
            try:
                path.mkdir(parents=True)
            except OSError as error:
                raise InputError(name, "a folder that can be made", f"{error.strerror}: {finals[name]}") from None
            finally:
                made.extend(reversed(missing))
        yield staged
        _move(staged, finals)
    except BaseException:
        for path in staged.values():
            shutil.rmtree(path, ignore_errors=True)
        for parent in reversed(made):
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _move(staged: dict[str, pathlib.Path], finals: dict[str, pathlib.Path]) -> None:
    """Renames all folders, or none."""
    moved = []
    try:
        for name, path in staged.items():
            path.rename(finals[name])
            moved.append(name)
    except BaseException:
        for name in moved:
            finals[name].rename(staged[name])
        raise


def write_file(path: str | os.PathLike, content: bytes) -> None:
    """Writes or replaces a file atomically: after a crash it holds `content` or what it held before."""
    place = pathlib.Path(path)
    staged = place.with_name(f".{place.name}.incomplete")
    file = open(staged, "wb", opener=no_link)  # noqa: SIM115 - a link there is refused, and stays
    try:
        with file:
            file.write(content)
        sync(staged)
        os.replace(staged, place)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    sync(place.parent)


def no_link(path: str, flags: int) -> int:
    """The `opener` of `open` for a file whose place is known beforehand: raises `InputError` if a link is there."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(str(path), "no link", "one, which is not followed") from None
        raise


def sync(path: str | os.PathLike) -> None:
    """Returns once a file's content, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
