"""Two stores in memory that Beam's filesystems reach. Beam refuses two classes for one scheme: import, not copy."""

import io
from collections.abc import Iterator

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

STORE: dict[str, bytes] = {}
QUESTIONS: list[str] = []  # the folders that were listed
REFUSED: set[str] = set()  # folders that may not be listed, with a slash at the end


class _Writer(io.BytesIO):
    def __init__(self, path: str):
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            STORE[self._path] = self.getvalue()
        super().close()


class MemoryFileSystem(FileSystem):
    """`memory://bucket/name`: objects in a dictionary, as a cloud's store has them."""

    mkdirs = copy = size = None  # which nobody needs

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
            if path not in STORE:
                raise BeamIOError(f"not there: {path}")
            del STORE[path]


class FolderFileSystem(MemoryFileSystem):
    """`folders://name/file`: the same store, with folders, listed one at a time, as on HDFS."""

    @classmethod
    def scheme(cls) -> str:
        return "folders"

    def has_dirs(self) -> bool:
        return True

    def _is_folder(self, path: str) -> bool:
        return any(name.startswith(f"{path.rstrip('/')}/") for name in STORE)

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        folder = dir_or_prefix.rstrip("/") + "/"
        QUESTIONS.append(folder)
        entries = {folder + name.removeprefix(folder).partition("/")[0] for name in STORE if name.startswith(folder)}
        if folder in REFUSED:
            raise BeamIOError("List operation failed", {folder: PermissionError("Permission denied")})
        if not entries:
            raise BeamIOError("List operation failed", {folder: RuntimeError(f"{dir_or_prefix!r} is not a directory.")})
        for entry in sorted(entries):
            yield self.metadata(entry)

    def exists(self, path: str) -> bool:
        return path in STORE or self._is_folder(path)

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(STORE.get(path, b"")), 0.0)

    def rename(self, source_file_names, destination_file_names) -> None:
        for destination in destination_file_names:
            if destination in STORE:
                raise BeamIOError(f"there already: {destination}")
        super().rename(source_file_names, destination_file_names)

    def delete(self, paths) -> None:
        for path in paths:
            if not self.exists(path):
                raise BeamIOError(f"not there: {path}")
            for name in [name for name in STORE if name == path or name.startswith(f"{path}/")]:
                del STORE[name]
