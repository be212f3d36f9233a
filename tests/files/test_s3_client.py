"""Our S3 client, with a stand-in for boto3; `tests/cluster/test_s3.py` uses a real store."""

import importlib.util
import io
import types

import pytest
from apache_beam.io.aws.clients.s3 import boto3_client
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.options.value_provider import RuntimeValueProvider

from elmo_tf.errors import InputError
from elmo_tf.files import s3_client, stores


class NoCredentialsError(Exception):
    """As boto3's."""


class Refused(Exception):
    def __init__(self):
        super().__init__("Access Denied")
        self.response = {"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": {"Message": "Access Denied"}}


class Boto3:
    """A client that records requests, and raises `error` if it is set."""

    error: Exception | None = None
    made = 0

    def __init__(self, settings: dict):
        Boto3.made, Boto3.last = Boto3.made + 1, self
        self.settings = settings
        self.asked: list[tuple[str, dict]] = []

    def __getattr__(self, name: str):
        def answer(**asked):
            if self.error:
                raise self.error
            self.asked.append((name, asked))
            body = types.SimpleNamespace(read=io.BytesIO(b"content").read, close=lambda: None, _raw_stream=io.BytesIO())
            return {"UploadId": "u", "ETag": "e", "Body": body, "KeyCount": 0}

        return answer


@pytest.fixture(autouse=True)
def boto3(monkeypatch) -> type[Boto3]:
    session = types.SimpleNamespace(client=lambda **settings: Boto3(settings))
    config = types.SimpleNamespace
    fake = types.SimpleNamespace(session=types.SimpleNamespace(Session=lambda: session, Config=config))
    monkeypatch.setattr(boto3_client, "boto3", fake)
    monkeypatch.setattr(boto3_client, "Client", boto3_client.Client)  # restores what a test replaces
    s3_client._connection.cache_clear()
    monkeypatch.setattr(Boto3, "made", 0)
    monkeypatch.setattr(Boto3, "error", None)
    monkeypatch.setattr(boto3_client.retry.Clock, "sleep", lambda self, seconds: pytest.fail("asked again"))
    return Boto3


def test_a_process_has_one_client_for_the_same_options_with_connections_for_all_threads(boto3):
    first, same, other = (
        s3_client.Client(PipelineOptions([f"--s3_region_name={region}"])) for region in ("a", "a", "b")
    )
    assert first.client is same.client is not other.client
    assert first is not same  # each client has its own position in the file that it reads
    assert boto3.made == 2
    options = PipelineOptions(["--s3_endpoint_url=http://here", "--s3_access_key_id=me", "--s3_disable_ssl"])
    settings = s3_client.Client(options).client.settings
    assert settings["config"].max_pool_connections >= 2 * stores.REQUESTS
    given = {"endpoint_url": "http://here", "aws_access_key_id": "me", "use_ssl": False}
    assert settings | given == settings


def test_a_worker_without_options_reads(monkeypatch):
    monkeypatch.setattr(FileSystems, "_pipeline_options", None)
    monkeypatch.setattr(RuntimeValueProvider, "runtime_options", None)
    assert stores.names("s3://bucket/a") == []


def test_a_refusal_is_one_error_that_names_the_path_and_is_not_asked_again(boto3):
    for boto3.error, words in (
        (Refused(), "Access Denied"),
        (NoCredentialsError("Unable to locate credentials"), "Unable to locate credentials"),
    ):
        with pytest.raises(stores.WriteError, match=rf"^cannot write s3://bucket/a: {words}$"):
            stores.write("s3://bucket/a", b"x")
        for ask in (stores.read, stores.names, stores.open_file):
            with pytest.raises(stores.ReadError, match=rf"^cannot read s3://bucket/a\S*: {words}$"):
                ask("s3://bucket/a")


def test_a_bucket_that_cannot_be_listed_is_refused_in_the_words_of_the_store(boto3, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    stores.check_store("s3://bucket/some/part-*")
    assert boto3.last.asked == [("list_objects_v2", {"Bucket": "bucket", "Prefix": "some/part-", "MaxKeys": 1})]
    boto3.error = Refused()
    with pytest.raises(InputError, match=r"^s3://bucket: cannot access the store \(Access Denied\)$"):
        stores.check_store("s3://bucket")


def test_a_worker_without_boto3_says_so(monkeypatch):
    monkeypatch.setattr(boto3_client, "boto3", None)
    with pytest.raises(stores.ReadError, match=r"^cannot read s3://bucket/a: No module named 'boto3'$"):
        stores.exists("s3://bucket/a")
