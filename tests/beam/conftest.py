"""A corpus on disk, the preprocessing of it, a journal and an empty store, for the tests of this folder."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from elmo_tf.beam.running.journal import Journal
from elmo_tf.cli import jobs
from tests.beam.memory_store import STORE


@pytest.fixture
def corpus(tmp_path: pathlib.Path) -> Callable[..., list[str]]:
    """Writes files, `corpus(b"...", b"...")` or `corpus(name=b"...")`; returns their paths."""

    def write(*contents: bytes, **named: bytes) -> list[str]:
        files = {**{f"{number}.txt": content for number, content in enumerate(contents)}, **named}
        paths = {tmp_path / "corpus" / name: content for name, content in files.items()}
        for path, content in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return list(map(str, paths))

    return write


@pytest.fixture
def process(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Preprocesses files in this process, `process(paths, "--shards=2")`; returns the output folder."""

    def run(inputs: list[str], *options: str, output: str = "output") -> pathlib.Path:
        jobs.run("preprocess", ["--input", *inputs, "--output", str(tmp_path / output), *options])
        return tmp_path / output

    return run


@pytest.fixture
def notes(tmp_path: pathlib.Path) -> Journal:
    """The journal of a folder that is not finished."""
    (tmp_path / "_unfinished").mkdir()
    return Journal(str(tmp_path), "run")


@pytest.fixture
def store() -> Iterator[dict[str, bytes]]:
    """The store in memory, empty when the test begins and ends."""
    STORE.clear()
    yield STORE
    STORE.clear()
