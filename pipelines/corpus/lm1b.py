"""The 1 Billion Word benchmark (Chelba et al., 2013): its archive downloaded, checked, and unpacked once.

    elmo-tf corpus lm1b --output corpora/lm1b

A file of the output folder stands under its name only when it is whole, and `lm1b.json` only when all of them do, so
the same command goes on wherever an earlier one ended.
"""

import contextlib
import dataclasses
import fcntl
import json
import logging
import os
import pathlib
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from elmo_tf.errors import InputError
from elmo_tf.files import download

MANIFEST_FILE = "lm1b.json"  # written last
_COPY_BYTES = 1 << 20
_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Source:
    """An archive that is published, and what is taken from it."""

    url: str
    size: int  # bytes
    sha256: str  # hexadecimal
    root: str  # the archive's one folder
    folders: tuple[str, ...]  # inside it; the files directly in them are taken
    unpacked_size: int  # bytes of those files, roughly


LM1B = Source(
    url="http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz",
    size=1_792_209_805,
    sha256="01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
    root="1-billion-word-language-modeling-benchmark-r13output",
    folders=("training-monolingual.tokenized.shuffled", "heldout-monolingual.tokenized.shuffled"),
    unpacked_size=4_200_000_000,
)


def fetch(
    output: str | os.PathLike,
    source: Source = LM1B,
    archive: str | os.PathLike | None = None,
    keep_archive: bool = False,
) -> dict[str, int]:
    """Puts the source's folders into `output`; what is there already is neither downloaded nor unpacked again.

    Args:
        output: folder; made if it is not there.
        source: the archive.
        archive: a downloaded copy to unpack, which stays where it is; None: download to `output`.
        keep_archive: whether the downloaded archive stays in `output` after it is unpacked.

    Returns:
        The bytes of each file, by its path in `output`.

    Raises:
        InputError: if the archive cannot be had or is another one, or `output` cannot take it.
    """
    output = pathlib.Path(output)
    with _own_folder(output):
        files = _finished(output, source)
        if files is not None:
            _log.info("nothing to do in %s: %s", output, _describe(files, source))
            return files
        fetched = output / f"{source.root}.tar.gz"
        if archive is None:
            _check_room(output, source, fetched)
            if fetched.exists():  # from a run that ended while unpacking: it is checked once more
                fetched.rename(download.part_of(fetched))
            download.download(source.url, source.size, source.sha256, fetched)
        else:
            _check_room(output, source, None)
            download.check(pathlib.Path(archive), source.size, source.sha256, "--archive")
        files = _unpack(pathlib.Path(archive or fetched), output, source)
        about = {"url": source.url, "sha256": source.sha256, "bytes": source.size, "files": files}
        with _write_whole(output / MANIFEST_FILE) as file:
            file.write(json.dumps(about, indent=1).encode() + b"\n")
        if archive is None and not keep_archive:
            fetched.unlink()
        download.part_of(fetched).unlink(missing_ok=True)  # of a download given up for --archive
    _log.info("ready in %s: %s; now, for example:\n%s", output, _describe(files, source), _next_command(output, source))
    return files


@contextlib.contextmanager
def _own_folder(output: pathlib.Path) -> Iterator[None]:
    """Makes the folder and keeps other runs out of it. After an exception no empty folder made here is left."""
    if output.exists() and not output.is_dir():
        raise InputError(f"--output: expected a folder, found a file: {output}")
    made = [path for path in (output, *output.parents) if not path.exists()]
    lock = None
    try:
        try:
            output.mkdir(parents=True, exist_ok=True)
            lock = os.open(output, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"--output: expected a folder to write in, found {error.strerror}: {output}") from None
        _take(lock, output)
        yield
    except BaseException as error:
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()
        if isinstance(error, KeyboardInterrupt) and output.exists():
            _log.info("interrupted; the same command goes on with what is in %s", output)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _take(lock: int, output: pathlib.Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"--output: expected a folder of its own, found another run at work: {output}") from None
    except OSError:  # a file system without locks, such as NFS for folders: nobody is kept out
        pass


def _finished(output: pathlib.Path, source: Source) -> dict[str, int] | None:
    """Returns what the manifest lists if all of it is there, None otherwise."""
    try:
        about = json.loads((output / MANIFEST_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if about["sha256"] != source.sha256:
        return None
    lost = [name for name, size in about["files"].items() if not _is_whole(output / name, size)]
    if lost:
        _log.info("%d files are missing or changed in %s, %s for one", len(lost), output, lost[0])
    return None if lost else about["files"]


def _is_whole(path: pathlib.Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _check_room(output: pathlib.Path, source: Source, fetched: pathlib.Path | None) -> None:
    """Raises `InputError` if the disk cannot hold what is still to be written; `fetched`: where an archive comes to."""
    there = [path for folder in source.folders for path in (output / folder).glob("*")]
    needed = max(source.unpacked_size - sum(path.stat().st_size for path in there), 0)
    if fetched is not None:
        begun = [path for path in (fetched, download.part_of(fetched)) if path.exists()]
        needed += max(source.size - sum(path.stat().st_size for path in begun), 0)
    free = shutil.disk_usage(output).free
    if free < needed:
        raise InputError(f"--output: expected {needed / 1e9:.1f} GB of free disk, found {free / 1e9:.1f} GB: {output}")


def _unpack(archive: pathlib.Path, output: pathlib.Path, source: Source) -> dict[str, int]:
    """Writes the files that are not there yet; returns the bytes of all, by their path in `output`."""
    files = {}
    with (
        open(archive, "rb") as packed,
        tarfile.open(fileobj=packed, mode="r:gz") as members,
        download.ByteProgress("unpacking", source.size) as progress,
    ):
        for member in members:
            progress.show(packed.tell())
            name = _place(member, source)
            if name is None:
                continue
            files[name] = member.size
            if _is_whole(output / name, member.size):
                continue
            with _write_whole(output / name) as file:
                content = members.extractfile(member)
                while data := content.read(_COPY_BYTES):
                    file.write(data)
                    progress.show(packed.tell())
    return dict(sorted(files.items()))


def _place(member: tarfile.TarInfo, source: Source) -> str | None:
    """Returns where a member goes in the output folder; None for one that is not taken."""
    path = pathlib.PurePosixPath(member.name)
    taken = member.isreg() and len(path.parts) == 3 and path.parts[0] == source.root
    if not taken or path.parts[1] not in source.folders or path.name.startswith("."):  # .. and macOS's ._ files
        return None
    return f"{path.parts[1]}/{path.name}"


@contextlib.contextmanager
def _write_whole(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Gives a file to write, which gets its name once it is on the disk."""
    part = path.with_name(f".{path.name}.part")  # no glob of the text takes it
    with download.writing(path):
        path.parent.mkdir(exist_ok=True)
        try:
            with open(part, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _describe(files: dict[str, int], source: Source) -> str:
    counts = [f"{sum(name.startswith(f'{folder}/') for name in files)} files in {folder}" for folder in source.folders]
    return f"{' and '.join(counts)}, {sum(files.values()):,} bytes"


def _next_command(output: pathlib.Path, source: Source) -> str:
    text = shlex.quote(str(output / source.folders[0] / "*"))
    return f"elmo-tf preprocess --input {text} --min-count 3 --output data/lm1b"
