"""The 1 Billion Word benchmark (Chelba et al., 2013): downloads its archive, checks it and unpacks it.

    elmo-tf corpus lm1b --output corpora/lm1b

The output folder appears when all files in it are complete. An interrupted download resumes. A killed run may
leave `OUTPUT.download` or a hidden folder `.OUTPUT.incomplete-...` beside it, which can be deleted.
"""

import contextlib
import logging
import os
import pathlib
import shlex
import shutil
import tarfile
from collections.abc import Iterator

from elmo_tf.errors import InputError
from elmo_tf.files import download, intact, lock, progress, staging

URL = "http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz"
SIZE = 1_792_209_805  # bytes
SHA256 = "01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e"
ROOT = "1-billion-word-language-modeling-benchmark-r13output"  # the archive's only folder
# Its folders whose direct files are unpacked.
FOLDERS = ("training-monolingual.tokenized.shuffled", "heldout-monolingual.tokenized.shuffled")

_log = logging.getLogger("elmo_tf")


def fetch(output: str | os.PathLike, archive: str | os.PathLike | None = None) -> None:
    """Creates the folder `output` with the folders of training and held-out text.

    Args:
        output: a new folder.
        archive: a downloaded copy to unpack, which is kept; None: download it to `OUTPUT.download`, which is
            deleted at the end.

    Raises:
        InputError: if the archive is not available or is another file, or `output` exists or cannot be written.
    """
    output = pathlib.Path(output)
    staging.check_absent(output)
    with _locked_parent(output):
        packed = pathlib.Path(archive or f"{os.path.abspath(output)}.download")
        if archive:
            intact.check(packed, SIZE, SHA256)
        else:
            download.download(URL, SIZE, SHA256, packed)
        _unpack(packed, output)
        if not archive:
            packed.unlink()
    text = shlex.quote(str(output / FOLDERS[0] / "*"))
    command = f"elmo-tf preprocess --input {text} --min-count 3 --output data/lm1b"
    counts = [f"{len(os.listdir(output / folder))} files in {folder}" for folder in FOLDERS]
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


def _unpack(archive: pathlib.Path, output: pathlib.Path) -> None:
    folders = [pathlib.PurePosixPath(ROOT, name) for name in FOLDERS]
    report = progress.reporter("unpacking {:,} of {:,} MB")
    with (
        open(archive, "rb") as packed,
        tarfile.open(fileobj=packed, mode="r:gz") as members,
        staging.new_folder(output) as new,
        download.writing(output),
    ):
        for name in FOLDERS:
            (new / name).mkdir()
        for member in members:
            report(packed.tell() // 10**6, SIZE // 10**6)
            path = pathlib.PurePosixPath(member.name)
            if path.parent not in folders or path.name.startswith("."):  # `..`, macOS's `._` files
                continue
            # Nothing but a regular file: `extractfile` would follow a link.
            if member.isreg() and (content := members.extractfile(member)):
                with open(new / path.relative_to(ROOT), "xb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
                staging.sync(file.name)
