"""SIGINT and SIGTERM as a request to stop between two steps, or while waiting for other processes."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator


class Interrupt:
    """Turns the first SIGINT or SIGTERM into a request to stop after the current step; the second acts as usual."""

    def __init__(self):
        self.requested = False
        self._before = {}

    def __enter__(self):
        # Outside the main thread, setting a handler raises ValueError.
        with contextlib.suppress(ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number, _frame):
        self.requested = True
        for one, handler in self._before.items():
            signal.signal(one, handler)
        # Not print: the signal may interrupt one.
        name = signal.Signals(number).name
        second = "a second signal waits at most for a checkpoint that is being written"
        with contextlib.suppress(OSError):  # the disk of a log may be full
            os.write(2, f"\n{name}: stopping after this step; {second}\n".encode())


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM raise `KeyboardInterrupt` in the block, as SIGINT does, unless Python handles it already.

    Once TensorFlow has joined a cluster, it ignores SIGTERM. After the block, SIGTERM ends the process again.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def fatal_interrupt() -> Iterator[None]:
    """Makes SIGINT end the process at once in the block, in which Python cannot handle it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
