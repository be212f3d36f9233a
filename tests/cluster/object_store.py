"""An S3 store on this machine: moto's server, in a process of its own."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

from tests.cluster import flink

_START_SECONDS = 120
_ANY_KEY = "any"
BUCKET = "bucket"


def environment(port: int) -> dict[str, str]:
    """Returns the variables by which commands and workers find the store."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": _ANY_KEY,
        "AWS_SECRET_ACCESS_KEY": _ANY_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class ObjectStore:
    def __init__(self, port: int, log: pathlib.Path):
        import boto3  # noqa: PLC0415 - an extra of these tests

        self.address = f"http://127.0.0.1:{port}"
        self._log = log
        self.s3 = boto3.client("s3")
        self.iam = boto3.client("iam")

    def put(self, prefix: str, folder: pathlib.Path) -> str:
        """Copies the files of a folder, or one file; returns their path in the store."""
        files = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
        for path in files:
            self.s3.upload_file(str(path), BUCKET, f"{prefix}/{path.relative_to(folder)}".removesuffix("/."))
        return f"s3://{BUCKET}/{prefix}"

    def names(self, folder: str) -> list[str]:
        """Returns the names of the files in a folder, at any depth."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{folder}/")
        return [entry["Key"].removeprefix(f"{folder}/") for page in pages for entry in page.get("Contents", [])]

    def contents(self, folder: str) -> dict[str, bytes]:
        return {
            name: self.s3.get_object(Bucket=BUCKET, Key=f"{folder}/{name}")["Body"].read()
            for name in self.names(folder)
        }

    def num_gets(self, name: str) -> int:
        return self._log.read_text().count(f"GET /{BUCKET}/{name} ")

    def reader(self) -> dict[str, str]:
        self.iam.create_user(UserName="reader")
        reads = {"Effect": "Allow", "Action": ["s3:List*", "s3:Get*"], "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [reads]})
        self.iam.put_user_policy(UserName="reader", PolicyName="reads", PolicyDocument=policy)
        key = self.iam.create_access_key(UserName="reader")["AccessKey"]
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    @contextlib.contextmanager
    def checking_keys(self) -> Iterator[None]:
        self._check_keys_after(0)
        yield
        self._check_keys_after(10**9)

    def _check_keys_after(self, num_requests: int) -> None:
        address, headers = f"{self.address}/moto-api/reset-auth", {"Content-Type": "text/plain"}
        asked = urllib.request.Request(address, str(num_requests).encode(), headers, method="POST")
        urllib.request.urlopen(asked, timeout=10).close()


@contextlib.contextmanager
def running(port: int, folder: pathlib.Path) -> Iterator[ObjectStore]:
    """Runs a store with one bucket while the block runs. The environment has to be that of `environment`."""
    log = folder / "store.log"
    program = "import sys; from moto.server import main; main(sys.argv[1:])"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            preexec_fn=flink.end_with_parent,  # noqa: PLW1509 - the tests have no other threads yet
        )
    try:
        for _ in range(_START_SECONDS * 10):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            if process.poll() is not None:
                raise RuntimeError(f"the store does not start: {log.read_text()[-500:]}")
            time.sleep(0.1)
        store = ObjectStore(port, log)
        store.s3.create_bucket(Bucket=BUCKET)
        yield store
    finally:
        process.kill()
        process.wait()
