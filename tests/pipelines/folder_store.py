"""A store in memory with folders, of which Beam lists one at a time, as on HDFS. Beam allows one class."""

from collections.abc import Iterator

from apache_beam.io.filesystem import BeamIOError, FileMetadata

from tests.pipelines import memory_store
from tests.pipelines.memory_store import STORE

QUESTIONS: list[str] = []  # the folders that were listed
REFUSED: set[str] = set()  # folders that may not be listed, with a slash at the end


class FolderFileSystem(memory_store.MemoryFileSystem):
    """`folders://name/file`: the store of `memory_store`, with a folder wherever the name of a file has a slash."""

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
