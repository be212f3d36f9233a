"""SIGINT and SIGTERM as a request to stop between two steps, or while waiting for other processes."""

import contextlib
import os
import signal
import threading
import types
from collections.abc import Iterator
from typing import Any


class Stopped(KeyboardInterrupt):
    """A run has stopped between two steps, as requested."""


class Interrupt:
    """Turns the first SIGINT or SIGTERM into a request to stop after the current step; the second interrupts."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupt":
        # Outside the main thread, setting a handler raises ValueError.
        with contextlib.suppress(ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number: int, _frame: types.FrameType | None) -> None:
        self.requested = True
        for handled, handler in self._before.items():
            # The default of SIGTERM would end the process while it writes the checkpoint.
            signal.signal(handled, signal.default_int_handler if handler == signal.SIG_DFL else handler)
        name, again = ("Ctrl-C", "Press again") if number == signal.SIGINT else ("SIGTERM", "Send it again")
        # Not `print`, which may fail if the signal has interrupted a `print`.
        with contextlib.suppress(OSError):  # the disk of a log may be full
            os.write(2, f"\n{name}: finishing this step, then saving. {again} to stop at once.\n".encode())


def terminable() -> contextlib.AbstractContextManager:
    """Makes SIGTERM raise `KeyboardInterrupt` in the block, as SIGINT does, unless Python handles it already.

    Once TensorFlow has joined a cluster, it ignores SIGTERM. After the block, SIGTERM ends the process again.
    """
    unhandled = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    return handling(signal.SIGTERM, signal.default_int_handler) if unhandled else contextlib.nullcontext()


@contextlib.contextmanager
def handling(number: int, handler: Any) -> Iterator[None]:
    """Handles a signal with `handler` in the block; outside the main thread, Python does not allow that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
