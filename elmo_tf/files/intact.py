"""Whether a file is intact: its size and its SHA-256."""

import hashlib
import pathlib

from elmo_tf.errors import InputError


def check(path: pathlib.Path, size: int | None, sha256: str | None) -> None:
    """Raises `InputError` unless the file at `path` has this size and checksum; None: any."""
    if not path.is_file():
        raise InputError(str(path), "no such file")
    actual_size = path.stat().st_size
    if size not in (None, actual_size):
        raise InputError(str(path), f"it has {actual_size:,} bytes, but should have {size:,}")
    if sha256 is None:
        return
    with open(path, "rb") as file:
        actual_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if actual_sha256 != sha256:
        raise InputError(str(path), f"its SHA-256 is {actual_sha256}, but should be {sha256}")
