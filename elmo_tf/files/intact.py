"""Whether a file is what it should be: a regular file, of its size and its SHA-256."""

import hashlib
import os
import pathlib
import stat

from elmo_tf.errors import InputError, unreadable

# The first bytes of the pointer that `git clone` writes instead of a file without Git LFS.
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def problem_of(path: str | os.PathLike) -> str | None:
    """Returns what is wrong with a file found in a folder; None if it is a regular file.

    A pipe may never be written to, and a device may have no end; neither is opened. A link to a file is followed.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return "is a folder, not a file"
    if not stat.S_ISREG(mode):
        return "is a pipe or a device, not a regular file"
    with open(path, "rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            return "is a Git LFS pointer, not the file itself; run `git lfs pull` in its folder"
    return None


def check_regular(path: str | os.PathLike) -> None:
    """Raises `InputError` if `problem_of` has an answer, or the file cannot be read."""
    try:
        problem = problem_of(path)
    except OSError as error:
        raise unreadable(path, error) from None
    if problem:
        raise InputError(str(path), problem)


def read(path: str | os.PathLike) -> bytes:
    """Returns the contents of a file; raises as `check_regular`."""
    check_regular(path)
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def check(path: pathlib.Path, size: int | None, sha256: str | None) -> None:
    """Raises `InputError` unless the regular file at `path` has this size and checksum; None: any."""
    check_regular(path)
    actual_size = path.stat().st_size
    if size not in (None, actual_size):
        raise InputError(str(path), f"it has {actual_size:,} bytes, but should have {size:,}")
    if sha256 is None:
        return
    with open(path, "rb") as file:
        actual_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if actual_sha256 != sha256:
        raise InputError(str(path), f"its SHA-256 is {actual_sha256}, but should be {sha256}")
