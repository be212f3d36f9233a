"""The files of a corpus, and how tasks and shards divide their text."""

import collections
import contextlib
import fnmatch
import functools
import glob
import hashlib
import os
import pathlib
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from elmo_tf.errors import InputError, reason
from elmo_tf.files import stores

# File endings, with the rough number of bytes of text per compressed byte.
COMPRESSED = {".gz": 3, ".bz2": 4, ".xz": 4, ".zst": 3}
_TAR = re.compile(r"\.(tar(\.(gz|bz2|xz|zst))?|tgz|tbz2|txz|tzst)$")
_FILE_READERS = 8  # tasks that share a compressed file; each must decompress all of it
_COMPARED_BYTES = 1 << 17  # of files of the same size, at a time
_OPEN_SHARDS = 64  # the most that a task writes at once; more shards of a file need more readers


class TextFile(NamedTuple):
    """A file of the corpus."""

    path: str
    size: int  # bytes on disk
    changed: float | None = None  # time of last change, as in `stores.Status`; None: not compared
    is_fasta: bool = False  # whether it is read in records; set by `reading.inspect`

    @property
    def is_divisible(self) -> bool:
        """Whether reading can begin anywhere in the file."""
        return not self.path.endswith(tuple(COMPRESSED))

    @property
    def text_size(self) -> int:
        """Bytes of text in it; an estimate if it is compressed."""
        return self.size * COMPRESSED.get(os.path.splitext(self.path)[1], 1)


class Slice(NamedTuple):
    """Part of a file: the lines that begin at bytes start <= n < end, or every `parts`-th block of them."""

    file: TextFile
    start: int = 0
    end: int | None = None  # None: the end of the file
    part: int = 0
    parts: int = 1

    @property
    def size(self) -> int:
        """Bytes of text in it; an estimate if the file is compressed."""
        return ((self.file.text_size if self.end is None else self.end) - self.start) // self.parts


class Task(NamedTuple):
    """A unit of work: the blocks of `slices`, in order, go to `shards` in turn."""

    number: int
    shards: tuple[int, ...]
    slices: tuple[Slice, ...]

    @property
    def size(self) -> int:
        """Bytes of text in it; an estimate if files are compressed."""
        return sum(text_slice.size for text_slice in self.slices)


def match(patterns: Iterable[str]) -> list[TextFile]:
    """Returns the files that `patterns` match, each once, sorted by path; local paths are absolute.

    A pattern is a file, a folder (every file in it, at any depth), or a glob (`*`, `?`, `[..]`, `**` for any depth).
    Hidden files and folders match only where the pattern contains the dot that begins their names. A local file that
    matches by several paths, through symbolic links, is read once: by its real name if that matches, else by the
    shortest path. Links to folders are followed only if a pattern matches them: not inside a folder, and not by `**`.

    Raises:
        InputError: if a pattern matches no file, or a file, folder or dangling link that could match cannot be read.
    """
    by_target: dict[str, TextFile] = {}  # the files, by their paths without links
    for pattern in patterns:
        stores.check_store(pattern)
        is_local = stores.is_local(pattern)
        matched = _match_local(pattern) if is_local else _match_remote(pattern)
        if not matched:
            missing = "no file matches this glob" if glob.has_magic(pattern) else "no such file"
            missing = "name a file; standard input is not supported" if pattern == "-" else missing
            raise InputError(pattern, "the folder has no files" if os.path.isdir(pattern) else missing)
        for path, status in matched.items():
            target, file = os.path.realpath(path) if is_local else path, TextFile(path, *status)
            by_target[target] = min(file, by_target.get(target, file), key=_preference)
    files = sorted(by_target.values())
    for file in files:
        if _TAR.search(file.path):
            raise InputError(file.path, "a tar archive: unpack it and give its text files")
        if stores.is_local(file.path) and not os.access(file.path, os.R_OK):
            raise InputError(file.path, "no permission to read it")
    return files


def short_names(paths: Sequence[str]) -> list[str]:
    """Returns paths relative to their deepest common folder."""
    folders = [path.split("/")[:-1] for path in paths]
    is_shared = [len(set(names)) == 1 for names in zip(*folders, strict=False)]
    shared = (*is_shared, False).index(False)
    return ["/".join(path.split("/")[shared:]) for path in paths]


def plan(corpus: list[TextFile], num_shards: int) -> list[Task]:
    """Returns tasks that together write `num_shards` shards and read every line of `corpus` exactly once.

    Divisible files are joined end to end and cut at equal distances. A compressed file that is larger than a shard gets
    its own shards, to which its blocks are assigned in turn. The plan depends only on the arguments.
    """
    total = sum(file.text_size for file in corpus)
    large = [file for file in corpus if not file.is_divisible and file.text_size * num_shards > total]
    counts = {file: file.text_size * num_shards // total for file in large}
    rest = [file for file in corpus if file not in counts]
    free = num_shards - sum(counts.values())
    # Shards left over by rounding down.
    if counts and not rest:
        counts[max(counts)] += free
    # The rest may be only empty files, which must still be read.
    if rest and not free:
        counts[max(counts, key=counts.__getitem__)] -= 1
        free = 1
    pieces = _cut(rest, free) if rest else []
    shards: list[tuple[tuple[int, ...], tuple[Slice, ...]]] = [((n,), slices) for n, slices in enumerate(pieces)]
    first = len(pieces)
    for file, count in counts.items():
        readers = max(min(count, _FILE_READERS), -(-count // _OPEN_SHARDS))
        numbers = range(first, first + count)
        shards.extend((tuple(numbers[n::readers]), (Slice(file, part=n, parts=readers),)) for n in range(readers))
        first += count
    return [Task(number, *task) for number, task in enumerate(shards)]


def plan_in_order(corpus: list[TextFile], count: int) -> list[Task]:
    """Returns `count` tasks that together read `corpus` in order; some may be empty.

    A compressed file is cut into a few parts, by an estimate of its text: each task decompresses everything before its
    part.
    """
    return [Task(number, (number,), slices) for number, slices in enumerate(_cut(corpus, count, _FILE_READERS))]


def _cut(corpus: list[TextFile], count: int, max_slices: int = 1) -> list[tuple[Slice, ...]]:
    """Returns `count` tuples of slices of about the same size, in the order of the files.

    A compressed file is cut into at most `max_slices`.
    """
    total = sum(file.text_size for file in corpus)
    edges = [total * number // count for number in range(1, count)]
    pieces: list[list[Slice]] = [[] for _ in range(count)]
    begin = number = 0
    for file in corpus:
        min_size = 1 if file.is_divisible else -(-file.text_size // max_slices)
        start, owner = 0, number  # of the slice that is still open
        while number < count - 1 and edges[number] < begin + file.text_size:
            cut = edges[number] - begin
            number += 1
            if cut - start >= min_size:
                pieces[owner].append(Slice(file, start, cut))
                start, owner = cut, number
            elif cut == start:
                owner = number
        pieces[owner].append(Slice(file, start))
        begin += file.text_size
        while number < count - 1 and edges[number] <= begin:
            number += 1
    return [tuple(slices) for slices in pieces]


def originals(corpus: Sequence[TextFile]) -> dict[str, str]:
    """Returns, for each file that equals an earlier one, the first such file: both by path.

    Only files of the same size are opened, and only those with the same beginning are read whole.
    """
    keys: dict[str, tuple[Any, ...]] = {file.path: (file.size,) for file in corpus if file.size}
    for is_whole in (False, True):
        counts = collections.Counter(keys.values())
        alike = [path for path, key in keys.items() if counts[key] > 1]
        checksums = stores.map_concurrently(functools.partial(_checksum, is_whole=is_whole), alike)
        keys = {path: (*keys[path], checksum) for path, checksum in zip(alike, checksums, strict=True)}
    first: dict[tuple[Any, ...], str] = {}
    return {path: first[key] for path, key in keys.items() if first.setdefault(key, path) != path}


def _checksum(path: str, is_whole: bool) -> bytes:
    """Returns a checksum of a file as it is stored, or of its beginning."""
    checksum = hashlib.blake2b()
    with stores.read_errors(path), stores.open_file(path) as file:
        while data := file.read(_COMPARED_BYTES):
            checksum.update(data)
            if not is_whole:
                break
    return checksum.digest()


def check_unchanged(corpus: Sequence[TextFile]) -> None:
    """Raises `InputError`, naming the first file whose size or modification time has changed."""
    statuses = stores.map_concurrently(stores.status, (file.path for file in corpus))
    for file, status in zip(corpus, statuses, strict=True):
        check_status(file, status)


def check_status(file: TextFile, status: stores.Status) -> None:
    """Raises `InputError` if a file has changed since `match`."""
    if status != (file.size, file.changed):
        raise InputError(file.path, "changed while it was read; run the command again when it is complete")


def _match_local(pattern: str) -> dict[str, stores.Status]:
    """Returns the files by absolute path."""
    # `..` after a link is the parent of the link's target.
    absolute = os.path.realpath(pattern) if os.pardir in pattern.split(os.sep) else os.path.abspath(pattern)
    absolute = re.sub(r"(/\*\*)+$", "", absolute) or "/"
    matched: Iterable[str] = []
    if pattern and _mode(absolute, follow_links=False):
        matched = [absolute]
    elif glob.has_magic(pattern):
        # An existing folder, such as `[old]`, is not a pattern.
        top = next(folder for folder in pathlib.Path(absolute).parents if os.path.isdir(folder))
        matched = _expand(str(top), pathlib.Path(absolute).relative_to(top).parts)
    paths = {file for path in matched for file in _files(path)}
    return {path: stores.status(path) for path in paths}


def _expand(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Yields the paths below a folder that match a glob, given part by part."""
    if not parts:
        yield folder
        return
    part, *rest = parts
    if part == "**":
        yield from _expand(folder, rest)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from _expand(entry.path, parts)
    elif glob.has_magic(part):
        for entry in _entries(folder, part):
            if not rest or stat.S_ISDIR(_mode(entry.path)):
                yield from _expand(entry.path, rest)
    elif _mode(path := os.path.join(folder, part), follow_links=False):
        yield from _expand(path, rest)


def _files(path: str) -> Iterator[str]:
    """Yields a file, or those in a folder at any depth. Raises `InputError` for anything else."""
    mode = _mode(path)
    if stat.S_ISREG(mode):
        yield path
    elif not stat.S_ISDIR(mode):
        raise InputError(path, "neither a file nor a folder")
    else:
        for entry in _entries(path):
            if not (entry.is_symlink() and stat.S_ISDIR(_mode(entry.path))):
                yield from _files(entry.path)


def _entries(folder: str, pattern: str = "*") -> list[os.DirEntry]:
    """Returns the entries of a folder that match a glob, hidden ones only if the glob begins with a dot."""
    with _naming(folder), os.scandir(folder) as entries:
        return [
            entry
            for entry in entries
            if fnmatch.fnmatchcase(entry.name, pattern) and (pattern.startswith(".") or not entry.name.startswith("."))
        ]


def _mode(path: str, follow_links: bool = True) -> int:
    """Returns type and permissions of `path`; 0 if it does not exist. Raises `InputError` if they cannot be read.

    A dangling link is an error if links are followed.
    """
    try:
        with _naming(path):
            return os.stat(path, follow_symlinks=follow_links).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if follow_links and os.path.islink(path):
            raise InputError(path, "a link to nothing; remove it, or restore its target") from None
        return 0


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Turns file system errors in the block, except for a missing path, into one that names the path."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise InputError(
            path, f"cannot be read ({reason(error)}); change that, or name files to read instead"
        ) from None


def _preference(file: TextFile) -> tuple[bool, int, str]:
    """Orders the paths of a file. Links come last, because their names may lack the ending of a compressed file."""
    return os.path.islink(file.path), len(file.path), file.path


def _match_remote(pattern: str) -> dict[str, stores.Status]:
    """Returns the files by path, except those where a wildcard matched the dot that begins a name."""
    pattern = pattern.rstrip("/")
    for wildcard in (pattern, stores.join(pattern, "**")):
        matched = stores.match(wildcard).items()
        if files := {path: status for path, status in matched if path.count("/.") <= pattern.count("/.")}:
            return files
    return {}
