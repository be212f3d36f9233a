"""Files on this machine and, with Beam's extras, in remote stores: `s3://`, `gs://` and others.

A file appears complete or not at all: it is written under a temporary name, flushed to the disk and renamed.
"""

import collections
import concurrent.futures
import contextlib
import io
import itertools
import json
import os
import pathlib
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems

from elmo_tf.errors import InputError, printable
from elmo_tf.files import json_file

_BATCH = 1000  # files deleted per request, as many as S3 allows
_COPY_BYTES = 1 << 20  # in memory while a file is copied
_READERS = 16  # requests to a store at a time
_PIECES = 10_000  # of JSON that are written together
_TEMPORARY = ".tmp-"  # at the end of a file's name, before a random number
_LIBRARIES = ("azure", "boto3", "botocore", "google")  # of stores; their errors are not always `OSError`s
UNSEEN = "all workers need it under this path"


class _FileError(OSError):
    def __init__(self, message: str):
        # A worker cannot report names that are not UTF-8.
        super().__init__(printable(message))


class WriteError(_FileError):
    """A file cannot be written, because the disk is full for example. Data already written are kept."""


class ReadError(_FileError):
    """A file cannot be read, for a reason other than its contents. Data already written are kept."""


def is_local(path: str) -> bool:
    """Whether `path` is on this machine rather than in a remote store."""
    return FileSystems.get_scheme(path) is None


def check_store(path: str) -> None:
    """Raises `InputError`, naming `path`, if its store cannot be reached: what is missing, or what the store says."""
    if is_local(path):
        return
    try:
        _remote().check(path)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(path, "a path in a store that answers", _reason(error)) from None


def check_folder(path: str) -> None:
    """Raises `InputError` if a remote folder cannot be used: see `check_store`. Beam has no quotes for globs."""
    if not is_local(path) and not {*"*?["}.isdisjoint(path):
        raise InputError(path, "a folder in a store whose path has no *, ? or [", "one that has")
    check_store(path)


def join(folder: str, *names: str) -> str:
    """Returns the path of a file in `folder`."""
    return FileSystems.join(folder, *names)


def match(pattern: str) -> list[FileMetadata]:
    """Returns path and size of the files of a remote store that match a glob, hidden ones included.

    Raises:
        ReadError: if the store refuses.
    """
    with _asked(pattern):
        return _remote().match(pattern)


def sizes(folder: str) -> dict[str, int]:
    """Returns the sizes in bytes of the files directly in `folder`, by name; empty if there is no such folder."""
    if is_local(folder):
        found = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                # It may be deleted meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
        return found
    return {os.path.basename(found.path): found.size_in_bytes for found in match(join(folder, "*"))}


def size(path: str) -> int | None:
    """Returns the size of a file in bytes; None if there is none."""
    if is_local(path):
        return os.path.getsize(path) if os.path.isfile(path) else None
    return next((found.size_in_bytes for found in match(path) if found.path == path), None)


def exists(path: str) -> bool:
    """Whether there is a file or folder at `path`."""
    with _asked(path):
        return _system(path).exists(path)


def last_changed(path: str) -> float:
    """Returns when a file was last written, in seconds since 1970."""
    with _asked(path):
        return _system(path).last_updated(path)


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading, without decompressing it; the file can seek."""
    with _asked(path):
        return _system(path).open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def read(path: str) -> bytes:
    """Returns the contents of a file."""
    with _asked(path), open_file(path) as file:
        return file.read()


def read_range(path: str, start: int, end: int) -> bytes:
    """Returns the bytes `start` to `end` of a file without reading others, as Beam's 16 MB buffers for stores would.

    Raises:
        ReadError: also if the file ends before `end`.
    """
    with _asked(path), open_file(path) as file:
        unbuffered = getattr(file, "raw", file)
        unbuffered.seek(start)
        parts, left = [], end - start
        while left and (part := unbuffered.read(left)):
            parts.append(part)
            left -= len(part)
    if left:
        raise ReadError(f"cannot read {path}: expected {end - start} bytes from byte {start} on, {left} are missing")
    return b"".join(parts)


def fetch(path: str, place: pathlib.Path) -> None:
    """Copies a file to a place on this machine. Raises `ReadError` and `WriteError`."""
    try:
        with place.open("wb") as local, open_file(path) as file:
            while content := _next(path, file):
                local.write(content)
    except ReadError:
        raise
    except OSError as error:
        raise WriteError(f"cannot write {place}: {_reason(error)}") from error


def _next(path: str, file: BinaryIO) -> bytes:
    with _asked(path):
        return file.read(_COPY_BYTES)


def read_json(path: str, kind: Any) -> Any | None:
    """Returns the value in a JSON file as a `kind` (see `json_file.read`); None if it is damaged or does not fit."""
    content = read(path)
    try:
        return json_file.parse(content, kind, path)
    except InputError:
        return None


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Yields a file to write, which replaces any file at `path` when the block ends without an exception.

    Raises:
        WriteError: naming `path`, if it cannot be written.
    """
    temporary = f"{path}{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        file = _system(path).create(temporary, compression_type=CompressionTypes.UNCOMPRESSED)
        with file:
            yield file
            file.flush()
            # A file of a remote store has no descriptor.
            with contextlib.suppress(AttributeError, io.UnsupportedOperation):
                os.fsync(file.fileno())
        if is_local(path):
            os.replace(temporary, path)
        else:
            _system(path).rename([temporary], [path])
    except BaseException as error:
        delete([temporary])
        is_stores = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _LIBRARIES
        if is_stores and not isinstance(error, (ReadError, WriteError)):
            raise WriteError(f"cannot write {path}: {_reason(error)}") from error
        raise


def write(path: str, content: bytes) -> None:
    """Writes a whole file. Raises `WriteError`."""
    with create(path) as file:
        file.write(content)


def write_json(path: str, value: Any) -> None:
    """Writes a value as a JSON file, in ASCII because file names need not be UTF-8. Raises `WriteError`."""
    pieces = json.JSONEncoder(indent=1).iterencode(value)
    with create(path) as file:
        # All pieces at once would take ten times the memory of the text.
        while block := list(itertools.islice(pieces, _PIECES)):
            file.write("".join(block).encode())
        file.write(b"\n")


def at_once(ask: Callable[[Any], Any], about: Iterable[Any]) -> Iterator[Any]:
    """Yields `ask(item)` for each item, in order, with a limited number of requests to a store at a time."""
    asked: collections.deque[concurrent.futures.Future] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(_READERS) as threads:
        for one in about:
            asked.append(threads.submit(ask, one))
            if len(asked) >= _READERS:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()


def delete(paths: Iterable[str]) -> None:
    """Deletes files of one file system; those that are missing or cannot be deleted are skipped."""
    remaining = iter(paths)
    while batch := list(itertools.islice(remaining, _BATCH)):
        if is_local(batch[0]):
            for path in batch:
                with contextlib.suppress(OSError):
                    os.remove(path)  # Beam's file system would take the path for a glob
            continue
        try:
            _system(batch[0]).delete(batch)
        except Exception:  # of any library
            for path in batch:
                with contextlib.suppress(Exception):
                    _system(path).delete([path])


def delete_folder(path: str) -> None:
    """Deletes a folder and everything in it; a missing folder is not an error."""
    if is_local(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        delete(found.path for found in match(join(path, "**")))


def is_temporary(name: str) -> bool:
    """Whether a file's name is that of one being written, or left behind by a process that was killed."""
    return _TEMPORARY in name


def _remote() -> ModuleType:
    """Returns the module for remote stores, which local files do not need."""
    from elmo_tf.beam.cluster import remote_stores

    return remote_stores


def _system(path: str) -> FileSystem:
    return FileSystems.get_filesystem(path) if is_local(path) else _remote().system(path)


@contextlib.contextmanager
def _asked(path: str) -> Iterator[None]:
    """Turns an OSError in the block, or whatever a remote store raises, into a `ReadError`."""
    try:
        yield
    except (InputError, ReadError):
        raise
    except Exception as error:
        if is_local(path) and not isinstance(error, OSError):
            raise
        hint = f"; {UNSEEN}" if isinstance(error, FileNotFoundError) else ""
        raise ReadError(f"cannot read {path}: {_reason(error)}{hint}") from error


def _reason(error: Exception) -> str:
    """Returns the innermost message of an error of Beam's file systems."""
    while details := getattr(error, "exception_details", None):
        error = next(iter(details.values())) if isinstance(details, dict) else details
    words = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error) or type(error).__name__
    return " ".join(words.split())
