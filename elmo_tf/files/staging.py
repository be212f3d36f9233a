"""Output folders and files that appear complete or not at all."""

import contextlib
import errno
import os
import pathlib
import re
import shutil
import uuid
from collections.abc import Iterator

from elmo_tf.errors import InputError


def check_for_tensorflow(path: str | os.PathLike) -> None:
    """Raises `InputError` if TensorFlow cannot read files at `path`: it treats paths as patterns, and needs UTF-8."""
    target = _target(path)
    if any("\udc80" <= character <= "\udcff" for character in target):
        raise InputError(str(path), "the path is not UTF-8, which TensorFlow needs")
    if not {*"*?[]\\"}.isdisjoint(target):
        raise InputError(str(path), "TensorFlow treats a path with *, ?, [, ] or \\ as a pattern; use another path")


def check_link(path: str | os.PathLike) -> None:
    """Raises `InputError` if `path`, or a folder above it, is a dangling link: its target is not written to."""
    absolute = pathlib.Path(os.path.abspath(path))
    for link in (absolute, *absolute.parents):
        if link.is_symlink() and not link.exists():
            raise InputError(str(path), "a link to a path that does not exist; it is not followed")


def check_file(path: str | os.PathLike) -> None:
    """Raises `InputError` unless a file can be written, or replaced, at `path`."""
    check_link(path)
    if os.fspath(path) == "-":
        raise InputError("-", "the name of a file is needed; standard output is not supported")
    if os.path.isdir(path):
        raise InputError(str(path), "this is a folder; name a file")
    if not os.path.isdir(folder := os.path.dirname(os.path.abspath(path))):
        raise InputError(str(path), f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(str(path), f"the folder {folder} cannot be written to")


def check_new_file(path: str | os.PathLike) -> None:
    """Raises `InputError` unless a new file can be written at `path`."""
    check_file(path)
    if os.path.lexists(path):
        raise InputError(str(path), "already exists; name a new file")


def check_absent(path: str | os.PathLike) -> None:
    """Raises `InputError` unless nothing, or an empty folder that can be replaced, is at `path`."""
    check_link(path)
    target = _target(path)
    if os.path.isdir(target) and not os.listdir(target):
        if os.path.ismount(target) or os.path.samefile(target, os.curdir):
            problem = "a mount point or the current folder, which cannot be replaced; name a new folder in it"
            raise InputError(str(path), problem)
        return
    if os.path.lexists(target):
        existing = "this folder exists and is not empty" if os.path.isdir(target) else "a file of this name exists"
        raise InputError(str(path), f"{existing}; name a new folder")


@contextlib.contextmanager
def new_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yields a folder to write in, and renames it to `path` when the block ends without an exception.

    After an exception, neither the folder nor parents made for it remain. The yielded path is absolute. Raises
    `InputError` if `path` is in use, or no folder can be made there.
    """
    check_absent(path)
    with staged_folder(path) as staged:
        yield staged
        staged.rename(_target(path))


@contextlib.contextmanager
def staged_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yields a new folder beside `path`, with a hidden name; the block renames it.

    After an exception, neither the folder nor parents made for it remain. An `OSError` that names no file, as about a
    full disk, names `path`.
    """
    final = pathlib.Path(_target(path))
    with created_folder(final.with_name(temporary_name(final.name)), path) as staged:
        try:
            yield staged
        except BaseException as error:
            shutil.rmtree(staged, ignore_errors=True)
            if isinstance(error, OSError) and error.errno and error.filename is None:
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise


@contextlib.contextmanager
def created_folder(path: pathlib.Path, subject: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Creates a folder and its parents; after an exception in the block, removes those that it created and are empty.

    Raises `InputError` about `subject` if the folder cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(str(subject), f"the folder cannot be made ({error.strerror})") from None
        yield path
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _target(path: str | os.PathLike) -> str:
    """Returns an absolute path; that of the linked folder if `path` is a link to a folder."""
    return os.path.realpath(path) if os.path.islink(path) and os.path.isdir(path) else os.path.abspath(path)


def unique_id() -> str:
    """Returns twelve hexadecimal digits that no other process has, on any machine."""
    return uuid.uuid4().hex[:12]


def temporary_name(name: str, identifier: str | None = None) -> str:
    """Returns a hidden name for an unfinished file; no other writer uses it without the identifier."""
    return f".{name}.incomplete-{identifier or unique_id()}"


def is_temporary(name: str) -> bool:
    """Whether `temporary_name` has made `name`."""
    return re.fullmatch(r"\.[^/]+\.incomplete-[0-9a-f]{12}", name) is not None


def no_link(path: str, flags: int) -> int:
    """An `opener` for `open` that raises `InputError` for a link, or a pipe, at a predictable path to write to."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(str(path), "a link, which is not followed") from None
        if error.errno == errno.ENXIO:
            raise InputError(str(path), "a pipe, which is not written to") from None
        raise


def sync(path: str | os.PathLike) -> None:
    """Flushes a file's content, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
