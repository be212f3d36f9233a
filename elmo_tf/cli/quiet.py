"""How the command line prepares its process: memory, streams, TensorFlow without start-up notes and optional imports.

It changes the whole process while it runs, so only a command may use it, before it starts threads.
"""

import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Iterator

from elmo_tf.errors import InputError

# Keras imports these for wrappers and plots that no command uses: a third of a command's start-up time.
_HIDDEN_MODULES = ("matplotlib", "sklearn")


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's malloc.h


def keep_freed_memory() -> None:
    """Makes the allocator keep what is freed for the next arrays, up to 2 GB; does nothing without glibc.

    Threads other than the first keep arrays below 64 MB: glibc's heaps of threads hold no more, and map what is larger.
    TensorFlow 2.21 lowers the limit to 128 kB again when it makes a dataset from a generator, as `task` does.
    A training step frees and allocates the same large arrays as the step before. By default the system takes each of
    them back and clears its pages when it gives them out again: a seventh of a step's CPU time (benchmarks/tried.md).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)  # no array gets a mapping of its own, which would end with it
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def load_tensorflow(on_gpu: bool, gpus: str | None = None) -> None:
    """Imports TensorFlow quietly, and hides unwanted GPUs from it.

    Args:
        on_gpu: whether a GPU is used at all.
        gpus: the numbers of the GPUs to use, separated by commas; None: all.

    Raises:
        InputError: if a number in `gpus` is repeated or not a GPU's.
    """
    # Inherited by worker processes. TensorFlow would otherwise reserve the memory of every visible GPU.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    with _hidden(), _quiet_stderr():
        import tensorflow

        # The first search for GPUs also prints notes.
        devices = tensorflow.config.list_physical_devices("GPU")
    if gpus is None:
        if devices and not on_gpu:
            tensorflow.config.set_visible_devices([], "GPU")
        return
    wanted, numbers = gpus.split(","), [str(number) for number in range(len(devices))]
    if not set(wanted) <= set(numbers) or len(set(wanted)) < len(wanted):
        if not numbers:
            raise InputError("gpus", "this machine has no GPU")
        raise InputError("gpus", f"different numbers among {', '.join(numbers)}", repr(gpus))
    tensorflow.config.set_visible_devices([devices[int(number)] for number in wanted], "GPU")


def prepare_streams() -> None:
    """Opens closed standard streams as /dev/null, and makes stdout and stderr write UTF-8."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # `os.open` takes the lowest free number, which is `number`: all below it are open. Workers inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    # Bytes of a path that are not UTF-8 are printed unchanged, or as escapes.
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


@contextlib.contextmanager
def _hidden() -> Iterator[None]:
    """Makes imports of unneeded modules fail, as if they were not installed."""
    names = [name for name in _HIDDEN_MODULES if name not in sys.modules]
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type] # None is how Python marks a missing module
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Sends stderr output of TensorFlow's C++ code to /dev/null, unless TF_CPP_MIN_LOG_LEVEL asks for it."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") in ("0", "1"):
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as devnull:
            os.dup2(devnull.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
