"""A store in memory that Beam's filesystems reach. Beam refuses two classes for one scheme: import, not copy."""

import io
from collections.abc import Iterator

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

STORE: dict[str, bytes] = {}


class _Writer(io.BytesIO):
    def __init__(self, path: str):
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            assert self.getvalue(), f"{self._path}: Beam cannot write empty files to S3"
            STORE[self._path] = self.getvalue()
        super().close()


class MemoryFileSystem(FileSystem):
    """`memory://bucket/name`: objects in a dictionary, as a cloud's store has them."""

    mkdirs = copy = size = None  # abstract methods that no test needs

    @classmethod
    def scheme(cls) -> str:
        return "memory"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *(path.strip("/") for path in paths)])

    def split(self, path: str) -> tuple[str, str]:
        return tuple(path.rsplit("/", 1))

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        return (self.metadata(path) for path in sorted(STORE) if path.startswith(dir_or_prefix))

    def create(self, path, mime_type="", compression_type="auto"):
        return _Writer(path)

    def open(self, path, mime_type="", compression_type="auto"):
        if path not in STORE:
            raise BeamIOError(f"not there: {path}")
        return io.BytesIO(STORE[path])

    def rename(self, source_file_names, destination_file_names) -> None:
        for source, destination in zip(source_file_names, destination_file_names, strict=True):
            STORE[destination] = STORE.pop(source)

    def exists(self, path: str) -> bool:
        return path in STORE

    def last_updated(self, path: str) -> float:
        return 0.0

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(STORE[path]), 0.0)

    def delete(self, paths) -> None:
        for path in paths:
            STORE.pop(path, None)
