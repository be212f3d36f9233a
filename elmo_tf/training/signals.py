"""SIGINT and SIGTERM as a request to stop between two steps, or while waiting for other processes."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator


class Interrupt:
    """Turns the first SIGINT or SIGTERM into a request to stop after the current step; the second interrupts."""

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
            # The default of SIGTERM would end the process while it writes the checkpoint.
            signal.signal(one, signal.default_int_handler if handler == signal.SIG_DFL else handler)
        # Not `print`, which may fail if the signal has interrupted a `print`.
        name = signal.Signals(number).name
        second = "a second signal stops before its end, but completes a checkpoint that is being written"
        with contextlib.suppress(OSError):  # the disk of a log may be full
            os.write(2, f"\n{name}: stopping after this step; {second}\n".encode())


def terminable() -> contextlib.AbstractContextManager:
    """Makes SIGTERM raise `KeyboardInterrupt` in the block, as SIGINT does, unless Python handles it already.

    Once TensorFlow has joined a cluster, it ignores SIGTERM. After the block, SIGTERM ends the process again.
    """
    unhandled = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    return handling(signal.SIGTERM, signal.default_int_handler) if unhandled else contextlib.nullcontext()


@contextlib.contextmanager
def handling(number: int, handler) -> Iterator[None]:
    """Handles a signal with `handler` in the block; outside the main thread, Python does not allow that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
