"""The 1 Billion Word benchmark (Chelba et al., 2013): downloads its archive, checks it and unpacks it.

    elmo-tf corpus lm1b --output corpora/lm1b

The output folder appears when all files in it are complete. An interrupted download resumes. A run that is killed may
leave `OUTPUT.download` or a hidden folder `.OUTPUT.incomplete-...` beside it, which can be deleted.
"""

import contextlib
import dataclasses
import logging
import os
import pathlib
import shlex
import shutil
import tarfile
from collections.abc import Iterator

from elmo_tf.errors import InputError
from elmo_tf.files import download, intact, lock, staging
from elmo_tf.files.progress import ByteProgress

_COPY_BYTES = 1 << 20
_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Source:
    """A published archive, and what to take from it."""

    url: str
    size: int  # bytes
    sha256: str  # hexadecimal
    root: str  # the archive's only folder
    folders: tuple[str, ...]  # in the root; the files directly in them are unpacked


LM1B = Source(
    url="http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz",
    size=1_792_209_805,
    sha256="01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
    root="1-billion-word-language-modeling-benchmark-r13output",
    folders=("training-monolingual.tokenized.shuffled", "heldout-monolingual.tokenized.shuffled"),
)


def fetch(output: str | os.PathLike, source: Source = LM1B, archive: str | os.PathLike | None = None) -> None:
    """Makes the folder `output` with the source's folders.

    Args:
        output: a new folder.
        source: the archive.
        archive: a downloaded copy to unpack, which stays where it is; None: download it to `OUTPUT.download`, which is
            deleted at the end.

    Raises:
        InputError: if the archive is not available or is another file, or `output` exists or cannot be written.
    """
    output = pathlib.Path(output)
    staging.check_absent(output)
    with _locked_parent(output):
        if archive is not None:
            intact.check(pathlib.Path(archive), source.size, source.sha256)
            _unpack(pathlib.Path(archive), output, source)
        else:
            downloaded = pathlib.Path(f"{os.path.abspath(output)}.download")
            if downloaded.exists():  # left by a run that ended while it unpacked; it is checked again
                downloaded.rename(download.part_of(downloaded))
            download.download(source.url, source.size, source.sha256, downloaded)
            _unpack(downloaded, output, source)
            downloaded.unlink()
    text = shlex.quote(str(output / source.folders[0] / "*"))
    command = f"elmo-tf preprocess --input {text} --min-count 3 --output data/lm1b"
    counts = [f"{len(os.listdir(output / folder))} files in {folder}" for folder in source.folders]
    _log.info("ready in %s: %s; now, for example:\n%s", output, " and ".join(counts), command)


@contextlib.contextmanager
def _locked_parent(output: pathlib.Path) -> Iterator[None]:
    """Makes and locks the parent of `output`."""
    with staging.created_folder(pathlib.Path(os.path.abspath(output)).parent, output) as parent:
        descriptor = os.open(parent, os.O_RDONLY)
        try:
            if not lock.acquire(descriptor, parent):
                raise InputError(str(parent), "another run is using this folder")
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; run the same command again") from None
        finally:
            os.close(descriptor)


def _unpack(archive: pathlib.Path, output: pathlib.Path, source: Source) -> None:
    with (
        open(archive, "rb") as packed,
        tarfile.open(fileobj=packed, mode="r:gz") as members,
        ByteProgress("unpacking", source.size) as progress,
        staging.new_folder(output) as folder,
        download.writing(output),
    ):
        for name in source.folders:
            (folder / name).mkdir()
        for member in members:
            progress.show(packed.tell())
            # No link reaches `extractfile`, which would follow it.
            path = _unpacked_path(member, source)
            if path is None or (content := members.extractfile(member)) is None:
                continue
            with open(folder / path, "xb") as file:
                shutil.copyfileobj(content, file, _COPY_BYTES)
            staging.sync(folder / path)


def _unpacked_path(member: tarfile.TarInfo, source: Source) -> str | None:
    """Returns the path of a member in the output folder; None for a member that is not unpacked."""
    match pathlib.PurePosixPath(member.name).parts:
        # Names that begin with a dot are `..` and macOS's `._` files.
        case (source.root, folder, name) if member.isreg() and folder in source.folders and not name.startswith("."):
            return f"{folder}/{name}"
    return None
