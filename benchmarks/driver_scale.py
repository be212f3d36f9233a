"""The cost of the process that starts `elmo-tf embed`, for a large text in a remote store.

    .venv/bin/python benchmarks/driver_scale.py [--chunks 150000] [--milliseconds 20]

The store is simulated: each request takes the given time, and a listing takes one request per 1,000 files. The workers
are simulated, too: their output is there at once. Everything else is the command's own code, from the plan of the text
to the finished folder. Prints the time and memory of the driver and the size of each job's graph; the last line is
JSON.
"""

import argparse
import collections
import json
import pathlib
import resource
import sys
import threading
import time
from collections.abc import Iterator

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from elmo_tf import config as config_lib  # noqa: E402
from elmo_tf import sources  # noqa: E402
from elmo_tf.beam.embed import job  # noqa: E402
from elmo_tf.beam.embed.config import EmbedConfig  # noqa: E402
from elmo_tf.beam.running import do_once, journal, runner_options  # noqa: E402
from elmo_tf.beam.text import corpora  # noqa: E402
from elmo_tf.records import record_folder  # noqa: E402

FOLDER = "simulated://bucket/vectors"
LINE_TOKENS, TOKEN_BYTES = 25, 6
_PAGE = 1000


class Store:
    """Files by path: their bytes, or only their size."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.files: dict[str, bytes | int] = {}
        self.questions: collections.Counter = collections.Counter()
        self._lock = threading.Lock()

    def ask(self, what: str, count: int = 1) -> None:
        """Waits for the given number of requests, one after the other."""
        with self._lock:
            self.questions[what] += count
        time.sleep(self.seconds * count)

    def size(self, path: str) -> int:
        """Returns the size of a file."""
        content = self.files[path]
        return content if isinstance(content, int) else len(content)

    def memory(self) -> int:
        """Returns the bytes that the simulation itself takes, roughly."""
        return sys.getsizeof(self.files) + sum(map(sys.getsizeof, self.files))


STORE = Store(0)


class _Reader:
    def __init__(self, content: bytes):
        self._content, self._place = content, 0

    def seek(self, place: int) -> None:
        """Goes to a byte."""
        self._place = place

    def read(self, size: int | None = None) -> bytes:
        """Returns so many bytes, or all of it without a copy."""
        return self._content if size is None else self._content[self._place : self._place + size]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class _Writer:
    def __init__(self, path: str):
        self._path, self._parts = path, []

    def write(self, content: bytes) -> int:
        """Appends to the file."""
        self._parts.append(content)
        return len(content)

    def flush(self) -> None:
        """Does nothing: a store has the file when it is closed."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        STORE.ask("create")
        STORE.files[self._path] = b"".join(self._parts)


class SimulatedFileSystem(FileSystem):
    """`simulated://`: the store of this program."""

    @classmethod
    def scheme(cls) -> str:
        return "simulated"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *(path.strip("/") for path in paths)])

    def split(self, path: str) -> tuple[str, str]:
        return tuple(path.rsplit("/", 1))

    def mkdirs(self, path: str) -> None:
        pass

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        found = [path for path in list(STORE.files) if path.startswith(dir_or_prefix)]
        STORE.ask("list", max(1, -(-len(found) // _PAGE)))
        return (FileMetadata(path, STORE.size(path), 0.0) for path in found)

    def create(self, path, mime_type="", compression_type="auto"):
        return _Writer(path)

    def open(self, path, mime_type="", compression_type="auto"):
        STORE.ask("open", 2)
        if path not in STORE.files:
            raise BeamIOError(f"not there: {path}")
        return _Reader(STORE.files[path])

    def copy(self, source_file_names, destination_file_names) -> None:
        raise NotImplementedError

    def rename(self, source_file_names, destination_file_names) -> None:
        STORE.ask("rename", 2 * len(source_file_names))
        for source, destination in zip(source_file_names, destination_file_names, strict=True):
            STORE.files[destination] = STORE.files.pop(source)

    def exists(self, path: str) -> bool:
        STORE.ask("exists")
        return path in STORE.files

    def size(self, path: str) -> int:
        STORE.ask("size")
        return STORE.size(path)

    def last_updated(self, path: str) -> float:
        STORE.ask("last_updated")
        return 0.0

    def metadata(self, path: str) -> FileMetadata:
        STORE.ask("metadata")
        return FileMetadata(path, STORE.size(path), 0.0)

    def delete(self, paths) -> None:
        STORE.ask("delete", -(-len(paths) // _PAGE))
        if missing := [path for path in paths if STORE.files.pop(path, None) is None]:
            raise BeamIOError(f"not there: {missing}")


class Workers:
    """Writes what workers would, at once."""

    def __init__(self, num_texts: int, num_chunks: int, text_bytes: int):
        self._num_texts, self._num_chunks = num_texts, num_chunks
        lines = max(1, text_bytes // (LINE_TOKENS * TOKEN_BYTES))
        lengths = np.full((lines, 2), (LINE_TOKENS, LINE_TOKENS * TOKEN_BYTES), "<u4")
        self._lines, self._index = lines, lengths.tobytes()
        self.graphs: dict[str, int] = {}

    def execute(self, pipeline: beam.Pipeline, note: str) -> None:
        """Replaces `runner_options.execute`."""
        phase = next(phase for phase in ("text", "embed") if phase.capitalize() in pipeline.applied_labels)
        self.graphs[phase] = len(pipeline.to_runner_api().SerializeToString())
        getattr(self, f"_{phase}")()
        self.store_bytes = STORE.memory()

    def _text(self) -> None:
        results = [self._result(number) for number in range(self._num_texts)]
        STORE.files[self.notes.results_path("text")] = json.dumps(results).encode()

    def _result(self, number: int) -> dict:
        index, text = (self.notes.path(f"text-{number:05d}.{ending}") for ending in ("lengths", "txt"))
        STORE.files[index], STORE.files[text] = self._index, self._lines * LINE_TOKENS * TOKEN_BYTES
        STORE.files[self.notes.path(f"text-{number:05d}.json")] = 300
        tokens = self._lines * LINE_TOKENS
        return {"irregular": {}, "lines": {"a.txt": self._lines}, "tokens": tokens, "files": {text: 1}}

    def _embed(self) -> None:
        results = []
        for number in range(self._num_chunks):
            STORE.files[self.notes.path(f"embed-{number:05d}.json")] = 100
            path = f"{FOLDER}/{record_folder.shard_name(number, self._num_chunks)}"
            STORE.files[path] = 64 << 20
            results.append({"files": {path: 64 << 20}, "first_line": number, "lines": 1, "tokens": 1})
        STORE.files[self.notes.results_path("embed")] = json.dumps(results).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=150_000, metavar="N", help="chunks of 64 MB of vectors (150,000)")
    parser.add_argument("--milliseconds", type=float, default=20, metavar="MS", help="of a question to the store (20)")
    arguments = parser.parse_args()

    model = sources.SavedModel("model", config_lib.ModelConfig())
    num_tokens = arguments.chunks * job._CHUNK_BYTES // (3 * 1024 * 4)
    text = corpora.TextFile("simulated://bucket/a.txt", num_tokens * TOKEN_BYTES)
    num_texts = -(-text.size // job._TEXT_BYTES)
    workers = Workers(num_texts, arguments.chunks, min(text.size, job._TEXT_BYTES))
    STORE.seconds = arguments.milliseconds / 1000
    do_once.runner_options.execute = workers.execute
    config = EmbedConfig(savedmodel="model", input="a", output=FOLDER, format="tfrecord", shards=arguments.chunks)
    beam_options, _ = runner_options.parse(config.beam)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.monotonic()
    with journal.unfinished([FOLDER], {"a": "plan"}) as workers.notes:
        job.Job(workers.notes, model, "model", "0" * 64, config, beam_options).run([text])
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {
        "chunks": arguments.chunks,
        "texts": num_texts,
        "milliseconds": arguments.milliseconds,
        "seconds": round(seconds, 1),
        "peak_mb": round(peak),
        "peak_before_mb": round(before),
        "store_mb": round(workers.store_bytes / 2**20),
        "graph_bytes": workers.graphs,
        "questions": dict(STORE.questions),
    }
    left = sum("_unfinished" in path for path in STORE.files)
    assert not left, f"{left} files of the journal are left"
    for name, value in found.items():
        print(f"{name:<16} {value}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
