"""Parts of `stores` for remote stores: Beam's file systems and extras, and our client for S3."""

import importlib.util
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems

from elmo_tf.errors import InputError
from elmo_tf.files import s3_client

# Beam's extra for a scheme, and a module that it installs.
_EXTRAS = {
    "gs": ("gcp", "google.cloud.storage"),
    "s3": ("aws", "boto3"),
    "azfs": ("azure", "azure.storage.blob"),
}


def check(path: str) -> None:
    """Raises `InputError` if the store is not supported or its extra missing; the store's own error if it refuses."""
    scheme = FileSystems.get_scheme(path)
    if scheme in ("file", "hdfs"):  # Beam lists these folder by folder, so `**` would not find deeper files
        instead = "a local path without a scheme, or an object store such as s3:// or gs://"
        raise InputError(path, f"{scheme}:// is not supported; use {instead}")
    extra, module = _EXTRAS.get(scheme, (scheme, None))
    if not _is_installed(module) or all(scheme != kind.scheme() for kind in FileSystem.get_all_subclasses()):
        package = f"apache-beam[{extra}]"
        raise InputError(path, f"{scheme}:// needs {package}: pip install '{package}'")
    FileSystems.get_filesystem(path)
    if scheme == "s3":
        s3_client.check(path)


def _is_installed(module: str | None) -> bool:
    try:
        return module is None or importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package that contains it is missing
        return False


def system(path: str) -> FileSystem:
    """Returns the file system for the store of `path`."""
    file_system: Any = FileSystems.get_filesystem(path)
    if file_system.scheme() == "s3":
        s3_client.install()
        # A worker started by a worker pool has no options, which Beam's S3 does not allow.
        file_system._options = file_system._options or {}
    return file_system


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading, without decompression."""
    return system(path).open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def create(path: str) -> BinaryIO:
    """Opens a new file for writing, without compression."""
    return system(path).create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def match(pattern: str) -> list[FileMetadata]:
    """Returns the files that match a glob, hidden ones included."""
    if "/" not in pattern.partition("://")[2]:
        return []  # a bucket, which is not a file
    return system(pattern).match([pattern])[0].metadata_list
