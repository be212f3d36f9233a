"""The 1 Billion Word benchmark (Chelba et al., 2013): downloads its archive, checks it and unpacks it.

    elmo-tf corpus lm1b --output corpora/lm1b

A file appears in the output folder only when it is complete, and `lm1b.json` only when all files are, so the same
command resumes after any interruption.
"""

import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from elmo_tf.errors import InputError
from elmo_tf.files import download, json_file, lock, staging
from elmo_tf.files.json_file import Count

MANIFEST_FILE = "lm1b.json"  # written last
_COPY_BYTES = 1 << 20
_log = logging.getLogger("elmo_tf")


class _Manifest(msgspec.Struct, frozen=True):
    """The part of `lm1b.json` that is read."""

    sha256: str
    files: dict[str, Count]  # bytes of each


@dataclasses.dataclass(frozen=True)
class Source:
    """A published archive, and what to take from it."""

    url: str
    size: int  # bytes
    sha256: str  # hexadecimal
    root: str  # the archive's one folder
    folders: tuple[str, ...]  # in the root; the files directly in them are unpacked
    unpacked_size: int  # bytes of those files, roughly


LM1B = Source(
    url="http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz",
    size=1_792_209_805,
    sha256="01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
    root="1-billion-word-language-modeling-benchmark-r13output",
    folders=("training-monolingual.tokenized.shuffled", "heldout-monolingual.tokenized.shuffled"),
    unpacked_size=4_200_000_000,
)


def fetch(output: str | os.PathLike, source: Source = LM1B, archive: str | os.PathLike | None = None) -> dict[str, int]:
    """Puts the source's folders into `output`. Files that are already there are not written again.

    Args:
        output: folder; made if it does not exist.
        source: the archive.
        archive: a downloaded copy to unpack, which stays where it is; None: download it to `output`, and delete it once
            it is unpacked.

    Returns:
        The bytes of each file, by its path in `output`.

    Raises:
        InputError: if the archive is not available or not the right one, or `output` cannot be written.
    """
    output = pathlib.Path(output)
    with _own_folder(output):
        files = _finished(output, source)
        if files is not None:
            _log.info("nothing to do in %s: %s", output, _describe(files, source))
            return files
        _check_room(output, source, archive is None)
        downloaded = output / f"{source.root}.tar.gz"
        if archive is not None:
            download.check(pathlib.Path(archive), source.size, source.sha256)
        else:
            if downloaded.exists():  # left by a run that ended while it unpacked; it is checked again
                downloaded.rename(download.part_of(downloaded))
            download.download(source.url, source.size, source.sha256, downloaded)
        files = _unpack(pathlib.Path(archive or downloaded), output, source)
        manifest = {"url": source.url, "sha256": source.sha256, "bytes": source.size, "files": files}
        with _new_file(output / MANIFEST_FILE) as file:
            file.write(json.dumps(manifest, indent=1).encode() + b"\n")
        if archive is None:
            downloaded.unlink()
    text = shlex.quote(str(output / source.folders[0] / "*"))
    command = f"elmo-tf preprocess --input {text} --min-count 3 --output data/lm1b"
    _log.info("ready in %s: %s; now, for example:\n%s", output, _describe(files, source), command)
    return files


@contextlib.contextmanager
def _own_folder(output: pathlib.Path) -> Iterator[None]:
    """Makes and locks the folder. After an exception, removes the folders made here if they are empty."""
    made = [path for path in (output, *output.parents) if not path.exists()]
    try:
        output.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(output, os.O_RDONLY)
    except OSError as error:
        raise InputError(str(output), "a folder to write in", error.strerror) from None
    try:
        if not lock.acquire(descriptor, output):
            raise InputError(str(output), "a folder that no other run writes", "one in use")
        yield
    except BaseException as error:
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()
        if isinstance(error, KeyboardInterrupt) and output.exists():
            _log.info("interrupted; run the same command again to resume with the files in %s", output)
        raise
    finally:
        os.close(descriptor)


def _finished(output: pathlib.Path, source: Source) -> dict[str, int] | None:
    """Returns the files in the manifest if all are there; None if not, or if the manifest is damaged."""
    try:
        manifest = json_file.read(output / MANIFEST_FILE, _Manifest)
    except InputError:
        return None
    is_whole = all(_is_whole(output / name, size) for name, size in manifest.files.items())
    return manifest.files if manifest.sha256 == source.sha256 and is_whole else None


def _is_whole(path: pathlib.Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _check_room(output: pathlib.Path, source: Source, downloads: bool) -> None:
    """Raises `InputError` if the disk has no room for the files. A run that resumes finds out when it writes."""
    needed = source.unpacked_size + (source.size if downloads else 0)
    free = shutil.disk_usage(output).free
    if free < needed and not os.listdir(output):
        raise InputError(str(output), f"{needed / 1e9:.1f} GB of free disk", f"{free / 1e9:.1f} GB")


def _unpack(archive: pathlib.Path, output: pathlib.Path, source: Source) -> dict[str, int]:
    """Writes the files that are not there yet; returns the bytes of all files, by their path in `output`."""
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
            with _new_file(output / name) as file:
                content = members.extractfile(member)
                while data := content.read(_COPY_BYTES):
                    file.write(data)
                    progress.show(packed.tell())
    return dict(sorted(files.items()))


def _place(member: tarfile.TarInfo, source: Source) -> str | None:
    """Returns the path of a member in the output folder; None for one that is not unpacked."""
    match pathlib.PurePosixPath(member.name).parts:
        # Names that begin with a dot are `..` and macOS's `._` files.
        case (source.root, folder, name) if member.isreg() and folder in source.folders and not name.startswith("."):
            return f"{folder}/{name}"
    return None


@contextlib.contextmanager
def _new_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Yields a file to write, which gets its name when all of it is on the disk."""
    # Hidden, so that no glob for the text matches it.
    part = path.with_name(f".{path.name}.part")
    with download.writing(path):
        path.parent.mkdir(exist_ok=True)
        try:
            with open(part, "wb", opener=staging.no_link) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _describe(files: dict[str, int], source: Source) -> str:
    counts = [f"{sum(name.startswith(f'{folder}/') for name in files)} files in {folder}" for folder in source.folders]
    return f"{' and '.join(counts)}, {sum(files.values()):,} bytes"
