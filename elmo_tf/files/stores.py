"""Files on this machine and, with Beam's extras, in remote stores: `s3://`, `gs://` and others.

A file appears complete or not at all: it is written under a temporary name, flushed to the disk and renamed. Beam is
imported for remote paths only.
"""

import concurrent.futures
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple

from elmo_tf.errors import InputError, printable, reason
from elmo_tf.files import intact, staging

REQUESTS = 16  # to a store at a time
_LIBRARIES = (
    "apache_beam",
    "azure",
    "boto3",
    "botocore",
    "google",
)  # of stores; they also raise other errors than `OSError`
_SCHEME = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://")  # as Beam finds it
UNSEEN = "all workers need it under this path"


class _FileError(OSError):
    def __init__(self, message: str):
        # A worker cannot report names that are not UTF-8.
        super().__init__(printable(message))


class WriteError(_FileError):
    """A file cannot be written, for example because the disk is full. Data already written are kept."""


class ReadError(_FileError):
    """A file cannot be read, for a reason other than its contents. Data already written are kept."""


class Status(NamedTuple):
    """A file's size and the time of its last change."""

    size: int  # bytes
    changed: float  # nanoseconds since 1970; in remote stores, seconds


def is_local(path: str) -> bool:
    """Whether `path` is on this machine rather than in a remote store."""
    return _SCHEME.match(path) is None


def check_store(path: str) -> None:
    """Raises `InputError`, naming `path`, if its store cannot be reached: a missing package, or the store's message."""
    if is_local(path):
        return
    try:
        _remote().check(path)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot access the store ({reason(error)})") from None


def check_folder(path: str) -> None:
    """Raises `InputError` if a remote folder cannot be used: see `check_store`. Beam cannot escape glob characters."""
    if not is_local(path) and not {*"*?["}.isdisjoint(path):
        raise InputError(path, "the path of a folder in a store cannot have *, ? or [")
    check_store(path)


def join(folder: str, name: str) -> str:
    """Returns the path of a file in `folder`."""
    return os.path.join(folder, name) if is_local(folder) else f"{folder.rstrip('/')}/{name}"


def match(pattern: str) -> dict[str, Status]:
    """Returns the files of a remote store that match a glob, hidden ones included, by path."""
    with read_errors(pattern):
        matched = _remote().match(pattern)
    return {file.path: Status(file.size_in_bytes, file.last_updated_in_seconds) for file in matched}


def names(folder: str) -> list[str]:
    """Returns the names of the files in `folder`, in a store at any depth; empty if there is no such folder."""
    if is_local(folder):
        return os.listdir(folder) if os.path.isdir(folder) else []
    prefix = join(folder, "")
    return [path.removeprefix(prefix) for path in match(join(folder, "**"))]


@contextlib.contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Turns an OSError in the block, or whatever a remote store raises, into a `ReadError`."""
    try:
        yield
    except (InputError, ReadError):
        raise
    except Exception as error:
        if is_local(path) and not isinstance(error, OSError):
            raise
        hint = f"; {UNSEEN}" if isinstance(error, FileNotFoundError) else ""
        raise ReadError(f"cannot read {path}: {reason(error)}{hint}") from error


def status(path: str) -> Status:
    """Returns size and time of change of a file. Raises `ReadError` if there is no such file."""
    with read_errors(path):
        if not is_local(path):
            metadata = _remote().system(path).metadata(path)
            return Status(metadata.size_in_bytes, metadata.last_updated_in_seconds)
        status = os.stat(path)
        return Status(status.st_size, status.st_mtime_ns)


def exists(path: str) -> bool:
    """Whether there is a file or folder at `path`."""
    with read_errors(path):
        return os.path.exists(path) if is_local(path) else _remote().system(path).exists(path)


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading, without decompressing it; the file can seek.

    Raises `InputError` for a pipe, a device or a Git LFS pointer: see `intact.problem_of`.
    """
    with read_errors(path):
        if not is_local(path):
            return _remote().open_file(path)
        if problem := intact.problem_of(path):
            raise InputError(path, problem)
        return open(path, "rb")


def read(path: str) -> bytes:
    """Returns the contents of a file."""
    with read_errors(path), open_file(path) as file:
        return file.read()


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Yields a file to write, which replaces any file at `path` when the block ends without an exception.

    Until then it has a hidden name that no other writer uses.

    Raises:
        WriteError: if the file cannot be written.
    """
    folder, name = os.path.split(path)
    staged = os.path.join(folder, staging.temporary_name(name))
    try:
        if is_local(path):
            with open(staged, "xb", opener=staging.no_link) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(staged, path)
            staging.sync(os.path.dirname(os.path.abspath(path)))
        else:
            with _remote().create(staged) as file:
                yield file
            _remote().system(path).rename([staged], [path])
    except BaseException as error:
        delete([staged])
        is_foreign = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _LIBRARIES
        if is_foreign and not isinstance(error, _FileError):
            raise WriteError(f"cannot write {path}: {reason(error)}") from error
        raise


def write(path: str | os.PathLike, content: bytes) -> None:
    """Writes or replaces a file: after a crash it holds `content` or what it held before. Raises `WriteError`."""
    with create(os.fspath(path)) as file:
        file.write(content)


def map_concurrently(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yields `function(item)` for each item, in order; `REQUESTS` of them run at a time, because stores are slow."""
    with concurrent.futures.ThreadPoolExecutor(REQUESTS) as threads:
        yield from threads.map(function, items)


def delete(paths: Iterable[str]) -> None:
    """Deletes files of the same file system; those that are missing or cannot be deleted are skipped."""
    paths = list(paths)
    if paths and not is_local(paths[0]):
        with contextlib.suppress(Exception):  # of any library; some continue after a file that they cannot delete
            _remote().system(paths[0]).delete(paths)
        return
    for path in paths:
        with contextlib.suppress(OSError):
            os.remove(path)


def _remote() -> ModuleType:
    from elmo_tf.files import remote_stores  # noqa: PLC0415 - it imports Beam

    return remote_stores
