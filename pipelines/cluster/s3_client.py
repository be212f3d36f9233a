"""Beam's S3 client with what it lacks (Beam 2.77): one connection per process, empty files, workers without options.

Beam's own classes are not patched.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from apache_beam.io.aws import s3io
from apache_beam.io.aws.clients.s3 import boto3_client, messages
from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

_WITHOUT_CREDENTIALS = 401
_CONNECTIONS = 32  # two files for each thread that may ask at a time; boto3's default is 10

_clients: dict[tuple, Any] = {}
_lock = threading.Lock()


class Client(boto3_client.Client):
    """Beam's client of S3.

    Beam makes one for each request, for which boto3 reads its files, 0.2 s of a core. Here all clients of a process
    share one boto3 connection, which is thread-safe.
    """

    def __init__(self, options: PipelineOptions | dict[str, Any]):
        if boto3_client.boto3 is None:
            raise ModuleNotFoundError("No module named 'boto3'", name="boto3")
        # With the process id: a connection must not be used on both sides of a fork.
        settings = _settings(options)
        key = (os.getpid(), *settings.items())
        with _lock:
            if key not in _clients:
                _clients[key] = _connection(settings)
        self.client = _clients[key]
        self._download_request = self._download_stream = None
        self._download_pos = 0

    def list(self, request: messages.ListRequest) -> messages.ListResponse:
        """Returns a page of a list."""
        with _not_again():
            return super().list(request)

    def get_object_metadata(self, request: messages.GetRequest) -> messages.Item:
        """Returns size and time of a file."""
        with _not_again():
            return super().get_object_metadata(request)

    def get_range(self, request: messages.GetRequest, start: int, end: int) -> bytes:
        """Returns bytes of a file."""
        with _as_oserror():
            return super().get_range(request, start, end)

    def create_multipart_upload(self, request: messages.UploadRequest) -> messages.UploadResponse:
        """Begins to write a file."""
        with _as_oserror():
            return super().create_multipart_upload(request)

    def upload_part(self, request: messages.UploadPartRequest) -> messages.UploadPartResponse:
        """Writes a part of a file."""
        with _as_oserror():
            return super().upload_part(request)

    def complete_multipart_upload(self, request: messages.CompleteMultipartUploadRequest) -> None:
        """Completes a file. S3 refuses an upload without parts, which is what Beam makes of an empty file."""
        with _as_oserror():
            if request.parts:
                super().complete_multipart_upload(request)
                return
            place = {"Bucket": request.bucket, "Key": request.object}
            try:
                self.client.abort_multipart_upload(**place, UploadId=request.upload_id)
                self.client.put_object(**place, Body=b"")
            except Exception as error:
                raise messages.S3ClientError(str(error), boto3_client.get_http_error_code(error)) from error


class Store:
    """What `filesystems` needs of S3, through the client above.

    Not a subclass of Beam's `FileSystem`, because Beam would have the workers of every pipeline import it.
    """

    match, match_files = FileSystem.match, FileSystem.match_files
    translate_pattern = staticmethod(FileSystem.translate_pattern)

    def __init__(self, options: PipelineOptions | dict[str, Any] | None):
        # A worker started by a worker pool has no options, which Beam does not allow.
        self.io = s3io.S3IO(client=Client(options or {}))

    def has_dirs(self) -> bool:
        """Whether the store has folders."""
        return False

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        return self.io.exists(path)

    def last_updated(self, path: str) -> float:
        """Returns when a file was last written, in seconds since 1970."""
        return self.io.last_updated(path)

    def metadata(self, path: str) -> FileMetadata:
        """Returns path, size and time of a file."""
        status = self.io._status(path)
        return FileMetadata(path, status["size"], status["last_updated"])

    def open(self, path: str, compression_type: str) -> BinaryIO:
        """Opens a file for reading, whatever its type."""
        return self.io.open(path, "rb")

    def create(self, path: str, compression_type: str) -> BinaryIO:
        """Opens a file for writing, whatever its type."""
        return self.io.open(path, "wb")

    def rename(self, sources: list[str], destinations: list[str]) -> None:
        """Renames files and replaces those that are there."""
        renamed = self.io.rename_files(list(zip(sources, destinations, strict=True)))
        _raise_first(error for _, _, error in renamed)

    def delete(self, paths: list[str]) -> None:
        """Deletes files."""
        _raise_first(self.io.delete_paths(paths).values())

    def _list(self, prefix: str) -> Iterator[FileMetadata]:
        for path, (size, updated) in self.io.list_files(prefix, with_metadata=True):
            yield FileMetadata(path, size, updated)


def _raise_first(errors: Iterable[Exception | None]) -> None:
    """Raises the first error as an OSError."""
    for error in filter(None, errors):
        raise OSError(errno.EIO, getattr(error, "message", str(error))) from error


def check(path: str) -> None:
    """Raises OSError with the store's message if the bucket of `path` cannot be listed."""
    bucket, _, rest = path.removeprefix("s3://").partition("/")
    client = Store(FileSystems.get_filesystem(path)._options).io.client.client
    prefix = rest[: min((rest.find(mark) for mark in "*?[" if mark in rest), default=len(rest))]
    try:
        client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except Exception as error:  # of boto3, which is not imported here, and of its parts
        answer = getattr(error, "response", {}).get("Error", {})
        raise OSError(answer.get("Message") or str(error)) from None


@contextlib.contextmanager
def _not_again() -> Iterator[None]:
    """Sets a status on errors that Beam would otherwise retry as network errors for ten minutes."""
    try:
        yield
    except messages.S3ClientError as error:
        if error.code is None and "redentials" in type(error.__context__).__name__:
            error.code = _WITHOUT_CREDENTIALS
        raise


@contextlib.contextmanager
def _as_oserror() -> Iterator[None]:
    """Turns Beam's exception into an OSError."""
    try:
        yield
    except messages.S3ClientError as error:
        raise OSError(errno.EIO, error.message) from error


def _settings(options: PipelineOptions | dict[str, Any]) -> dict[str, Any]:
    """Returns the options for S3."""
    if isinstance(options, PipelineOptions):
        options = options.view_as(S3Options).get_all_options(current_only=True)
    return {name: value for name, value in sorted(options.items()) if name.startswith("s3_")}


def _connection(settings: dict[str, Any]) -> Any:
    """Returns the boto3 client that Beam's client makes, with more connections."""
    session = boto3_client.boto3.session
    return session.Session().client(
        service_name="s3",
        region_name=settings.get("s3_region_name"),
        api_version=settings.get("s3_api_version"),
        use_ssl=not settings.get("s3_disable_ssl"),
        verify=settings.get("s3_verify"),
        endpoint_url=settings.get("s3_endpoint_url"),
        aws_access_key_id=settings.get("s3_access_key_id"),
        aws_secret_access_key=settings.get("s3_secret_access_key"),
        aws_session_token=settings.get("s3_session_token"),
        config=session.Config(max_pool_connections=_CONNECTIONS),
    )
