"""A cluster and an object store for all tests of this folder."""

import os
import pathlib
from collections.abc import Iterator

import pytest

from tests.beam.common import contents
from tests.cluster import commands, engine, flink, object_store


@pytest.fixture(scope="session", autouse=True)
def store_port() -> Iterator[int]:
    """The port of the object store, which the environment of all processes names, whether it runs or not."""
    port = flink.free_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_store.environment(port).items():
            patch.setitem(os.environ, name, value)
        yield port


@pytest.fixture(scope="session")
def store(store_port, tmp_path_factory) -> Iterator[object_store.ObjectStore]:
    for module in ("boto3", "moto", "flask"):
        pytest.importorskip(module, reason=f"needs {module}: pip install -r tests/cluster/requirements.txt")
    with object_store.running(store_port, tmp_path_factory.mktemp("store")) as started:
        yield started


@pytest.fixture(scope="session")
def cluster(store_port) -> Iterator[flink.Cluster]:
    """Two machines of one slot each. A test that kills one starts it again. Jobs that fail are not restarted."""
    if missing := engine.engine().missing():
        pytest.skip(missing)
    with flink.running(restarts=0) as started:
        yield started


@pytest.fixture
def patient_cluster(store_port) -> Iterator[flink.Cluster]:
    """Like `cluster`, with the restarts that docs/runners.md advises."""
    if missing := engine.engine().missing():
        pytest.skip(missing)
    with flink.running() as started:
        yield started


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes(b"".join(b"word%d is number %d of sentence %d\n" % (n % 997, n % 13, n) for n in range(20_000)))
    return path


@pytest.fixture(scope="session")
def large(text, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("large") / "large.txt"
    path.write_bytes(text.read_bytes() * 20)
    return path


@pytest.fixture(scope="session")
def large_records(large, tmp_path_factory) -> dict[str, bytes]:
    """The files that `preprocess` makes of `large` on this machine, in 12 shards."""
    output = tmp_path_factory.mktemp("large") / "records"
    commands.done("preprocess", f"--input={large}", "--shards=12", f"--output={output}")
    return contents(output)


@pytest.fixture(scope="session")
def sentences(text, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("sentences") / "b.txt"
    path.write_bytes(b"".join(text.read_bytes().splitlines(keepends=True)[:300]))
    return path
