"""A corpus on disk, the preprocessing of it, an unfinished folder and an empty store."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from elmo_tf.beam import output_folder
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
def folder(tmp_path: pathlib.Path) -> Iterator[output_folder.Folder]:
    with output_folder.claim({"train": str(tmp_path / "unfinished")}, {"command": "test"}) as folders:
        yield folders["train"]


@pytest.fixture
def store() -> Iterator[dict[str, bytes]]:
    STORE.clear()
    yield STORE
    STORE.clear()
