"""Whether a file is intact: its size and its SHA-256."""

import datetime
import hashlib
import pathlib
import time
from typing import BinaryIO

from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine

_BYTES_AT_ONCE = 1 << 20


class ByteProgress:
    """A progress line in megabytes, with speed and time left; shows nothing for work that takes only a moment.

    `doing` is its first word; `done` of `total` bytes are there at the start.
    """

    def __init__(self, doing: str, total: int, done: int = 0):
        self._doing, self._total, self.line = doing, total, ProgressLine(at_once=False)
        self.restart(done)

    def __enter__(self) -> "ByteProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self.line.clear()

    def restart(self, done: int) -> None:
        """Measures the speed from now on, with `done` bytes already there."""
        self._first, self._started_at = done, time.monotonic()
        self.show(done)

    def show(self, done: int) -> None:
        """Shows the progress, if it is time to update the line."""
        if not self.line.due():
            return
        text = f"{self._doing} {done / 1e6:,.0f}/{self._total / 1e6:,.0f} MB"
        if done > self._first:
            rate = (done - self._first) / (time.monotonic() - self._started_at)
            left = datetime.timedelta(seconds=round((self._total - done) / rate))
            text += f"  {rate / 1e6:,.1f} MB/s  {left} left"
        self.line.show(text)


def check(path: pathlib.Path, size: int | None, sha256: str | None) -> None:
    """Raises `InputError` unless the file at `path` has this size and checksum; None: any."""
    if not path.is_file():
        raise InputError(str(path), "no such file")
    size_here = path.stat().st_size
    if size not in (None, size_here):
        raise InputError(str(path), f"it has {size_here:,} bytes, but should have {size:,}")
    if sha256 is None:
        return
    with open(path, "rb") as file:
        sha256_here = hash_of(file, size_here).hexdigest()
    if sha256_here != sha256:
        raise InputError(str(path), f"its SHA-256 is {sha256_here}, but should be {sha256}")


def hash_of(file: BinaryIO, size: int) -> "hashlib._Hash":
    """Returns the digest of an open file of `size` bytes, read to its end."""
    digest = hashlib.sha256()
    file.seek(0)
    with ByteProgress("checking", size) as progress:
        while data := file.read(_BYTES_AT_ONCE):
            digest.update(data)
            progress.show(file.tell())
    return digest
