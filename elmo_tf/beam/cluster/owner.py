"""Who writes a remote folder: a note in it that changes while the run is alive, because stores have no locks.

Clocks of two machines differ, so no times are compared: a run that finds a note waits to see whether it changes.
"""

import contextlib
import ctypes
import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator

import msgspec

from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError
from elmo_tf.files.json_file import Count

_BEAT_SECONDS = 10.0  # between two changes of a note
_FIRST_SECONDS = 1.0  # until a run first checks whether another has overwritten its note
_WAIT_SECONDS = 35.0  # for another's note to change: three beats, and time for a slow store
_POLL_SECONDS = 1.0
_log = logging.getLogger("elmo_tf")


class _Note(msgspec.Struct, frozen=True):
    """The note of a folder's writer."""

    run: str
    who: str
    beat: Count


@contextlib.contextmanager
def owned(folder: str, path: str) -> Iterator[None]:
    """While the block runs, keeps a note at `path` that `folder` is being written.

    Raises:
        InputError: naming `folder`, if another run writes it, even one that starts at the same time.
        WriteError: if the note cannot be written.
    """
    _wait_for_silence(folder, path)
    heart = _Heart(path, threading.current_thread())
    heart.beat()
    heart.start()
    try:
        yield
        heart.check()
    except KeyboardInterrupt:
        if not heart.owner:
            raise
    finally:
        heart.stopping.set()
        heart.join()
        if not heart.owner:
            filesystems.delete([path])
    if heart.owner:
        raise _in_use(folder, heart.owner)


class _Heart(threading.Thread):
    """Changes this run's note regularly, and interrupts the run's thread if another run has taken the note."""

    def __init__(self, path: str, thread: threading.Thread):
        super().__init__(daemon=True)
        self._interrupted = thread
        self.stopping = threading.Event()
        self.owner = ""  # another run that has taken the folder
        self._path, self._id, self._count = path, uuid.uuid4().hex, 0
        self._who = f"process {os.getpid()} on {socket.gethostname()}"

    def beat(self) -> None:
        """Changes the note."""
        self._count += 1
        filesystems.write_json(self._path, {"run": self._id, "who": self._who, "beat": self._count})

    def check(self) -> None:
        """Notes who has taken the folder, if another run has."""
        note = _read(self._path)
        if note and note.run != self._id:
            self.owner = note.who

    def run(self) -> None:
        wait = _FIRST_SECONDS
        while not self.stopping.wait(wait):
            # If the store fails, whatever it raises, the tasks report it.
            with contextlib.suppress(Exception):
                self.check()
                if self.owner:
                    _interrupt(self._interrupted)
                    return
                self.beat()
            wait = _BEAT_SECONDS


def _interrupt(thread: threading.Thread) -> None:
    """Raises KeyboardInterrupt in this thread only; outside the main thread, when the thread's current wait ends."""
    if thread is threading.main_thread():
        # Also wakes a thread that waits. Python handles signals in the main thread only.
        signal.pthread_kill(thread.ident, signal.SIGINT)
    else:
        identifier = ctypes.c_ulong(thread.ident)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(KeyboardInterrupt))


def _wait_for_silence(folder: str, path: str) -> None:
    """Waits to see whether the folder's note changes, if there is one; raises `InputError` if it does."""
    first = _read(path)
    if first is None and not filesystems.exists(path):
        return
    who = first.who if first else "another run"
    _log.info("%s has been writing %s; waiting %.0f s to see whether it still is", who, folder, _WAIT_SECONDS)
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        note = _read(path)
        if note is None and not filesystems.exists(path):
            return
        first = first or note
        if note and note != first:
            raise _in_use(folder, note.who)


def _read(path: str) -> _Note | None:
    """Returns the note; None if it is missing or damaged."""
    try:
        return filesystems.read_json(path, _Note)
    except OSError:
        if filesystems.exists(path):
            raise
        return None


def _in_use(folder: str, who: str) -> InputError:
    return InputError(folder, "a folder that no other run writes", f"one in use by {who}")
