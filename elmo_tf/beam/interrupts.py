"""Ctrl-C and termination signals while a job runs."""

import contextlib
import signal
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Makes termination signals raise `KeyboardInterrupt` while the block runs.

    Otherwise temporary files of Beam and of `multiprocessing` would stay, and a remote job would keep running. A signal
    that is ignored, as under `nohup`, stays ignored.
    """

    def interrupt(_number: int, _frame: types.FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    with _handlers({number: interrupt for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL}):
        yield


@contextlib.contextmanager
def recorded() -> Iterator[threading.Event]:
    """Yields an event that is set when a signal raises an exception in the block.

    Beam catches a `KeyboardInterrupt` raised in a step, and continues with an error that has only its text.
    """
    happened = threading.Event()

    def recording(handler: Callable) -> Callable:
        def handle(number: int, frame: types.FrameType | None) -> Any:
            try:
                return handler(number, frame)
            except BaseException:
                happened.set()
                raise

        return handle

    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    with _handlers({number: recording(handler) for number, handler in handlers.items() if callable(handler)}):
        yield happened


@contextlib.contextmanager
def _handlers(handlers: dict[signal.Signals, Callable]) -> Iterator[None]:
    """Handles signals in the block; outside the main thread, Python does not allow that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
