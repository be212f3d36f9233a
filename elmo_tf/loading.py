"""TensorFlow's import in programs of ours: in silence, and without what its Keras would import on the side."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

# Keras imports them for wrappers and plots that nothing here uses: a third of the time until a command starts.
_NOT_NEEDED = ("matplotlib", "sklearn")
_lock = threading.RLock()  # one after the other, or one thread would take another's detour for the way back


@contextlib.contextmanager
def tensorflow() -> Iterator[None]:
    """Is to be held while TensorFlow is imported and looks for devices.

    Keeps what its C++ side then says of itself off stderr; Python's errors still come out.
    """
    with _lock, _absent(), _quiet_stderr():
        yield


@contextlib.contextmanager
def _absent() -> Iterator[None]:
    """Has imports of modules that are not needed fail, as where they are not installed."""
    names = [name for name in _NOT_NEEDED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") in ("0", "1"):  # somebody wants to see it
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
