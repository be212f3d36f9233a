"""Locks: a single run at a time in a folder."""

import contextlib
import logging
import os
import pathlib
from collections.abc import Iterator

import filelock

from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.files.progress import ProgressLine

FILE = ".lock"

_log = logging.getLogger("elmo_tf")


@contextlib.contextmanager
def locked(folder: str | os.PathLike, wait: bool = False) -> Iterator[None]:
    """Keeps other runs out of an existing folder while the block runs, by locking the file `.lock` in it.

    Raises `InputError` if another run has the folder and `wait` is False, or if the lock file is a link.
    """
    with open(pathlib.Path(folder, FILE), "ab", opener=staging.no_link) as file:
        if not acquire(file.fileno(), folder):
            if not wait:
                raise InputError(str(folder), "another run is using this folder")
            # Printed, not logged: the wait may be long, and a program may have no log.
            ProgressLine().leave(f"waiting for another run, which is using {folder}")
            filelock.lock_descriptor(file.fileno())
        yield


def acquire(descriptor: int, folder: str | os.PathLike) -> bool:
    """Locks an open file or folder until it is closed, at the latest when the process ends.

    Returns False if another process has the lock; if the file system has no locks, warns and returns True.
    """
    try:
        return filelock.lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        _log.warning(
            "warning: the file system of %s has no locks (%s): do not start a second run there", folder, error.strerror
        )
    return True
