"""Files that match a glob on those of Beam's file systems that list one folder at a time, such as HDFS."""

import math
import re
from collections.abc import Iterable, Iterator

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

_NO_FOLDER = "is not a directory"  # how the package hdfs reports a file; Beam raises all its errors as one type


def match(system: FileSystem, pattern: str) -> Iterator[FileMetadata]:
    """Yields the files that match a glob, at any depth; none if its folder does not exist."""
    fixed = re.match(r"[^[*?]*", pattern)[0]
    if fixed == pattern:
        entries = [system.metadata(pattern)] if system.exists(pattern) else []
        yield from _files(system, entries, 0)
        return
    folder = fixed.rpartition("/")[0]
    rest = pattern.removeprefix(folder).lstrip("/")
    if system.exists(folder):
        is_wanted = re.compile(system.translate_pattern(pattern)).match
        found = _files(system, system._list(folder), math.inf if "**" in rest else rest.count("/"))
        yield from (file for file in found if is_wanted(file.path))


def _files(system: FileSystem, entries: Iterable[FileMetadata], depth: float) -> Iterator[FileMetadata]:
    """Yields those of the entries of a folder that are files, and the files of its folders down to a depth."""
    for entry in entries:
        # Beam reports size 0 for folders and empty files.
        inside = None if entry.size_in_bytes else _list(system, entry.path)
        if inside is None:
            yield entry
        elif depth:
            yield from _files(system, inside, depth - 1)


def _list(system: FileSystem, path: str) -> list[FileMetadata] | None:
    """Returns the entries of a folder, None if it is a file; raises an error if the store refuses to list it."""
    try:
        return list(system._list(path))
    except BeamIOError as error:
        reasons = (error.exception_details or {}).values()
        if any(_NO_FOLDER in str(reason) for reason in reasons):
            return None
        raise
