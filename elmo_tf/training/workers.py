"""The processes that train one model, as a run sees them: `Alone`, or one of several `Workers`.

Both have the same methods. All workers call them at the same steps, and get the same answers.
"""

import contextlib
import hashlib
import logging
import pathlib
import re
import threading
import time
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.training import devices, signals

_FILE_SECONDS = 120  # until a file is visible to another worker
_POLL_SECONDS = 0.5
_log = logging.getLogger("elmo_tf")
# Raised by collective operations when another process has ended.
_GONE = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)
_OTHER_SIZE = "joining a group with size"  # TensorFlow's message if workers have different numbers of devices
_OTHERS = re.compile(r"collective|\bpeer\b", re.IGNORECASE)
_NAMES = re.compile(r"\[\[.*?\]\]|\{\{.*?\}\}|\[Op:.*?\]")  # of operations


class Alone:
    """The only process of a training."""

    is_chief = True
    count = 1

    def wait(self) -> None:
        """Waits for no one."""

    def any(self, flag: bool) -> bool:
        """Returns `flag`."""
        return flag

    def any_every(self, period: int, number: int, flag: bool) -> bool:
        """Returns `flag`, at each number."""
        return flag

    def chief(self, value: float) -> float:
        """Returns `value`."""
        return value

    def gathered(self, numbers: list[float] | np.ndarray) -> np.ndarray:
        """Returns the numbers, float64 `(1, numbers)`."""
        return np.array([numbers], np.float64)

    def wait_for_file(self, path: pathlib.Path) -> None:
        """Does nothing: this process has written the file."""

    def watched(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context that does nothing."""
        return contextlib.nullcontext()


class Workers:
    """The processes of a `MultiWorkerMirroredStrategy`; the first of them, the chief, writes the files and the log."""

    def __init__(self, strategy: tf.distribute.Strategy):
        resolver = strategy.cluster_resolver
        jobs = resolver.cluster_spec().as_dict()
        if "chief" in jobs:
            raise InputError("strategy", "its cluster has a chief; use the strategy of `cluster.from_environment`")
        self._strategy = strategy
        self.count = len(jobs["worker"])
        self.index = int(resolver.task_id)
        self.is_chief = self.index == 0
        self._me = f"worker {self.index} of {self.count}"
        self._gather = tf.function(lambda numbers: strategy.run(devices.gathered, args=(numbers,)), autograph=False)

    def wait(self) -> None:
        """Waits until all workers have called this."""
        _log.info("%s: waiting for the others", self._me)
        # In a thread, because Python handles signals only between two operations of its main thread.
        failed: list[Exception] = []

        def meet() -> None:
            try:
                self.gathered([0.0])
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=meet, daemon=True)
        with signals.terminable():
            thread.start()
            while thread.is_alive():
                thread.join(0.2)
        if failed:
            raise failed[0]

    def any(self, flag: bool) -> bool:
        """Returns whether `flag` is set on any worker."""
        return bool(self.gathered([flag]).any())

    def any_every(self, period: int, number: int, flag: bool) -> bool:
        """Like `any`, but asks only if `number` is a multiple of `period`."""
        # Asking takes a round trip and waits for the device.
        return number % period == 0 and self.any(flag)

    def chief(self, value: float) -> float:
        """Returns the chief's `value`."""
        return float(self.gathered([value])[0, 0])

    def gathered(self, numbers: list[float] | np.ndarray) -> np.ndarray:
        """Returns the numbers of all workers, float64 `(workers, numbers)`."""
        own = np.asarray(numbers, np.float64)[None]
        gathered = self._strategy.experimental_local_results(self._gather(tf.constant(own)))[0].numpy()
        # Every replica of a process contributes a row.
        return gathered[:: len(gathered) // self.count]

    def wait_for_file(self, path: pathlib.Path) -> None:
        """Waits for a file written by the chief; network file systems may show it late."""
        deadline = time.monotonic() + _FILE_SECONDS
        if not path.exists():
            _log.info("%s: waiting for %s to appear", self._me, path)
        while not path.exists():
            if time.monotonic() > deadline:
                problem = f"not there after {_FILE_SECONDS} s; all workers need a file system that they share"
                raise InputError(str(path), problem)
            time.sleep(_POLL_SECONDS)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Raises `ConnectionError` if another worker ends during the block."""
        try:
            yield
        except _GONE as error:
            # An internal error may have any cause.
            if isinstance(error, tf.errors.InternalError) and not _OTHERS.search(_NAMES.sub("", error.message)):
                raise
            if _OTHER_SIZE in error.message:
                own = f"{self._me} has {devices.num_local(self._strategy)}"
                problem = f"all workers need the same number of devices; {own}, and another differs"
                raise InputError("strategy", problem) from error
            raise ConnectionError(
                f"{self._me}: another worker has ended ({type(error).__name__}), and its log says why; "
                "start all of them again with the same commands: they resume from the newest checkpoint, if any"
            ) from error


def of(strategy: tf.distribute.Strategy) -> Alone | Workers:
    """Returns the processes that train together; only a `MultiWorkerMirroredStrategy` may have several."""
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict() if resolver else {}
    count = sum(len(jobs.get(job, [])) for job in ("chief", "worker"))
    return Workers(strategy) if count > 1 else Alone()


def check_same(workers: Alone | Workers, **values: object) -> None:
    """Raises `InputError` on all workers if their values, compared by `repr`, differ.

    They would otherwise wait for each other.
    """
    digests = [hashlib.sha256(repr(value).encode()).digest() for value in values.values()]
    # Bytes, because a float64 holds every number up to 255 exactly.
    own = np.frombuffer(b"".join(digests), np.uint8)
    gathered = workers.gathered(own).reshape(-1, len(values), len(digests[0]))
    for name, by_worker in zip(values, gathered.transpose(1, 0, 2), strict=True):
        different = [str(index) for index, row in enumerate(by_worker) if (row != by_worker[0]).any()]
        if different:
            raise InputError(name, f"workers 0 and {', '.join(different)} have different values; all need the same")
