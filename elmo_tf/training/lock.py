"""A workdir belongs to one run at a time."""

import contextlib
import fcntl
import io
import os
import pathlib
import socket
from collections.abc import Iterator

from elmo_tf.errors import InputError

FILE = ".lock"


@contextlib.contextmanager
def locked(folder: str | os.PathLike, argument: str = "--workdir") -> Iterator[None]:
    """Keeps other runs out of `folder` while the block runs; the kernel lets go when the process ends in any way.

    Raises:
        InputError: naming `argument` and the process, if another run has the folder.
    """
    with (pathlib.Path(folder) / FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise InputError(
                f"{argument}: expected a workdir that no other run is using, found {owner} training in it: {folder}"
            ) from None
        _write(file, f"process {os.getpid()} on {socket.gethostname()}\n")
        try:
            yield
        finally:
            _write(file, "")


def _write(file: io.TextIOWrapper, text: str) -> None:
    """Makes `text` the content, if the disk has room for it; the lock is what counts."""
    with contextlib.suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), text.encode())
