"""Fixes for Beam's S3 client (Beam 2.77): a connection per process, no retries without credentials."""

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any

from apache_beam.io.aws.clients.s3 import boto3_client, messages
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

_WITHOUT_CREDENTIALS = 401
_CONNECTIONS = 32  # two files for each thread that may ask at a time; boto3's default is 10

_lock = threading.Lock()


@contextlib.contextmanager
def _no_retry_without_credentials() -> Iterator[None]:
    """Sets a status on errors that Beam would otherwise retry as network errors for ten minutes."""
    try:
        yield
    except messages.S3ClientError as error:
        if error.code is None and "redentials" in type(error.__context__).__name__:
            error.code = _WITHOUT_CREDENTIALS
        raise


class Client(boto3_client.Client):
    """Beam's client of S3.

    Beam makes a client for each request, each time making boto3 read its files for 0.2 s of CPU. Here all clients of a
    process share a boto3 connection, which is thread-safe.
    """

    def __init__(self, options: PipelineOptions | dict[str, Any]):
        if boto3_client.boto3 is None:
            raise ModuleNotFoundError("No module named 'boto3'", name="boto3")
        if isinstance(options, PipelineOptions):
            options = options.view_as(S3Options).get_all_options(current_only=True)
        settings = sorted(item for item in options.items() if item[0].startswith("s3_"))
        with _lock:
            # With the process id: a connection must not be used on both sides of a fork.
            self.client = _connection(os.getpid(), tuple(settings))
        self._download_request = self._download_stream = None
        self._download_pos = 0

    list = _no_retry_without_credentials()(boto3_client.Client.list)
    get_object_metadata = _no_retry_without_credentials()(boto3_client.Client.get_object_metadata)


def install() -> None:
    """Replaces Beam's S3 client in this process."""
    setattr(boto3_client, "Client", Client)  # noqa: B010


def check(path: str) -> None:
    """Raises OSError with the store's message if the bucket of `path` cannot be listed."""
    bucket, _, rest = path.removeprefix("s3://").partition("/")
    file_system: Any = FileSystems.get_filesystem(path)
    client = Client(file_system._options or {}).client
    prefix = rest[: min((rest.find(mark) for mark in "*?[" if mark in rest), default=len(rest))]
    try:
        client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except Exception as error:  # of boto3, which is not imported here, or of a library under it
        answer = getattr(error, "response", {}).get("Error", {})
        raise OSError(answer.get("Message") or str(error)) from None


@functools.cache
def _connection(process: int, options: tuple[tuple[str, Any], ...]) -> Any:
    """Returns the boto3 client that Beam's client makes, with more connections."""
    del process
    session, settings = boto3_client.boto3.session, dict(options)
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
