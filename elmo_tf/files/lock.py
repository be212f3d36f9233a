"""A folder belongs to one run at a time."""

import contextlib
import fcntl
import io
import logging
import os
import pathlib
import socket
from collections.abc import Iterator

from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine

FILE = ".lock"

_log = logging.getLogger("elmo_tf")


@contextlib.contextmanager
def locked(folder: str | os.PathLike, wait: bool = False) -> Iterator[None]:
    """Keeps other runs out of `folder` while the block runs.

    The file `.lock` in it names the process that holds it.

    Args:
        folder: a folder that exists.
        wait: whether to wait, after a message, until the other run has ended.

    Raises:
        InputError: naming the process, if another run has the folder and `wait` is False.
    """
    with (pathlib.Path(folder) / FILE).open("a+") as file:
        if not acquire(file.fileno(), folder):
            file.seek(0)
            owner = file.read().strip() or "another process"
            if not wait:
                raise InputError("folder", "a folder that no other run is using", f"{owner} using it: {folder}")
            # Shown where no log is, too: the wait may be long.
            ProgressLine().leave(f"waiting for {owner}, which is using {folder}")
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        _write(file, f"process {os.getpid()} on {socket.gethostname()}\n")
        try:
            yield
        finally:
            _write(file, "")


def acquire(descriptor: int, folder: str | os.PathLike) -> bool:
    """Locks an open file or folder until it is closed; the kernel closes it when the process ends in any way.

    Args:
        descriptor: of the open file or folder.
        folder: what is locked by it, for the warning.

    Returns:
        False if another process has the lock. True, with a warning, on a file system without locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        _log.warning(
            "warning: the file system of %s has no locks (%s): do not start a second run there", folder, error.strerror
        )
    return True


def _write(file: io.TextIOWrapper, text: str) -> None:
    """Makes `text` the content; on a full disk the file stays empty, and the lock holds all the same."""
    with contextlib.suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), text.encode())
