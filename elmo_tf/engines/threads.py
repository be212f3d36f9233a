"""The threads of NumPy's engine.

Waiting threads of a BLAS library spin: with them, a sentence takes ten times as long beside a busy process. So each
product runs on one thread here, and the work is divided among threads that sleep while they wait.
"""

import concurrent.futures
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import threadpoolctl

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_num_calls = 0  # within `products_on_one_thread`, from all threads
_numbers: list[int] = []  # of threads of each library before these calls


@functools.cache
def blas() -> threadpoolctl.ThreadpoolController:
    """The controller of NumPy's BLAS library; empty on macOS, where that is Accelerate."""
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


@functools.cache
def num_threads() -> int:
    """Returns how many threads NumPy's products may use: one for each core unless OPENBLAS_NUM_THREADS, say, is set."""
    return max((library["num_threads"] for library in blas().info()), default=1)


@functools.cache
def _pool(process: int) -> concurrent.futures.ThreadPoolExecutor:
    """The threads beside the calling one; a forked process does not have its parent's."""
    return concurrent.futures.ThreadPoolExecutor(num_threads() - 1, "elmo_tf")


@contextlib.contextmanager
def products_on_one_thread() -> Iterator[None]:
    """Limits NumPy's products to one thread. The limit is the process's: it ends with the last of overlapping calls."""
    global _num_calls, _numbers  # noqa: PLW0603 - as the BLAS library's number of threads is
    with _lock:
        if not _num_calls:
            num_threads()  # before the limit
            _numbers = [library.num_threads for library in blas().lib_controllers]
            _set([1] * len(_numbers))
        _num_calls += 1
    try:
        yield
    finally:
        with _lock:
            _num_calls -= 1
            if not _num_calls:
                _set(_numbers)


def _set(numbers: list[int]) -> None:
    """Sets how many threads each library uses."""
    # threadpoolctl ignores limits set by any thread but the first.
    threadpoolctl.OpenBLASController.clear_controlling_thread(force=True)
    for library, number in zip(blas().lib_controllers, numbers, strict=True):
        library.set_num_threads(number)
    threadpoolctl.OpenBLASController.clear_controlling_thread(force=True)


def in_turn(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Returns `function(item)` for each item, all computed by the calling thread."""
    return [function(item) for item in items]


def divided(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Returns `function(item)` for each item, in their order; the calling thread computes the first one."""
    if num_threads() == 1:
        return in_turn(function, items)
    others = [_pool(os.getpid()).submit(function, item) for item in items[1:]]
    return [function(items[0]), *(other.result() for other in others)]
