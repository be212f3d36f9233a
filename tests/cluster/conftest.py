"""A cluster for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.cluster import engine, flink


@pytest.fixture(scope="session")
def cluster() -> Iterator[flink.Cluster]:
    """Two machines of one slot each. A test that kills one starts it again."""
    if missing := engine.engine().missing():
        pytest.skip(missing)
    with flink.running() as started:
        yield started
