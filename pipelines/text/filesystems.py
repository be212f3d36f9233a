"""Files wherever Beam's filesystems reach: local ones, and with Beam's extras `gs://`, `s3://`, `hdfs://` and others.

Every file appears whole or not at all: it is written under a temporary name, flushed to the disk and renamed.
"""

import contextlib
import io
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from elmo_tf.errors import InputError

_TEMPORARY = ".tmp-"  # and a random number, at the end of a file's name


class WriteError(OSError):
    """A file cannot be written: the disk is full, say. What is written already stays, to go on with."""


class ReadError(OSError):
    """A file cannot be read, through no fault of its contents. What is written already stays, to go on with."""


def is_local(path: str) -> bool:
    """Whether `path` is one of this machine's, not one of a store in the network."""
    return FileSystems.get_scheme(path) is None


def check_scheme(path: str, argument: str) -> None:
    """Raises `InputError`, naming `argument`, if no installed filesystem of Beam knows `path`."""
    try:
        FileSystems.get_filesystem(path)
    except ValueError:
        scheme = FileSystems.get_scheme(path)
        extra = {"gs": "gcp", "s3": "aws", "azfs": "azure", "hdfs": "hadoop"}.get(scheme, scheme)
        wanted = f"a local path, or for {scheme}:// an installed apache-beam[{extra}]"
        raise InputError(f"{argument}: expected {wanted}, found {path}") from None


def join(folder: str, *names: str) -> str:
    """Returns the path of a file in `folder`."""
    return FileSystems.join(folder, *names)


def match(pattern: str) -> list[FileMetadata]:
    """Returns path and size of the files that a glob matches."""
    return FileSystems.match([pattern])[0].metadata_list


def sizes(folder: str) -> dict[str, int]:
    """Returns the sizes in bytes of the files right in `folder`, by name; empty if there is no such folder."""
    if is_local(folder):
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
        return {}
    return {os.path.basename(found.path): found.size_in_bytes for found in match(join(folder, "*"))}


def exists(path: str) -> bool:
    """Whether there is a file or folder at `path`."""
    return FileSystems.exists(path)


def last_changed(path: str) -> float:
    """Returns when a file was written last, in seconds since 1970."""
    return FileSystems.get_filesystem(path).last_updated(path)


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading, its bytes as they are on disk; it can seek."""
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def read(path: str) -> bytes:
    """Returns the contents of a file."""
    with open_file(path) as file:
        return file.read()


def read_json(path: str) -> Any:
    """Returns the value in a JSON file."""
    return json.loads(read(path))


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Gives a file to write; it is at `path`, in place of any other, once the block has ended without an exception.

    Raises:
        WriteError: naming `path`, if it cannot be written.
    """
    temporary = f"{path}{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        file = FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED)
        with file:
            yield file
            file.flush()
            with contextlib.suppress(
                AttributeError, io.UnsupportedOperation
            ):  # a store in the network has no disk here
                os.fsync(file.fileno())
        _replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            FileSystems.delete([temporary])
        if isinstance(error, OSError) and not isinstance(error, WriteError):
            raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def _replace(source: str, path: str) -> None:
    """Renames a file, to where there may be another."""
    if is_local(path):
        os.replace(source, path)
        return
    try:
        FileSystems.rename([source], [path])
    except BeamIOError:  # HDFS takes no name that there is already
        if not exists(path):
            raise
        FileSystems.delete([path])
        FileSystems.rename([source], [path])


def write(path: str, content: bytes) -> None:
    """Writes a file at once. Raises `WriteError`."""
    with create(path) as file:
        file.write(content)


def write_json(path: str, value: Any) -> None:
    """Writes a value as a JSON file: in ASCII, as a file's name need not be UTF-8. Raises `WriteError`."""
    write(path, json.dumps(value, indent=1).encode() + b"\n")


def delete(paths: Iterable[str]) -> None:
    """Deletes files; one that is not there is no error."""
    for path in paths:
        with contextlib.suppress(OSError):
            FileSystems.delete([path])


def delete_folder(path: str) -> None:
    """Deletes a folder and all that is in it; one that is not there is no error."""
    if is_local(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        delete(found.path for found in match(join(path, "**")))


def is_left_over(name: str) -> bool:
    """Whether a file is what a killed process left of writing another."""
    return _TEMPORARY in name
