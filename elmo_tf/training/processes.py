"""The processes that train one model: usually this one alone."""

import contextlib
import pathlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf


class OneProcess:
    """A process that trains alone; `workers.Workers` has the same methods for several."""

    count = 1
    is_chief = True  # whether this process writes the files and the log
    me = "this process"  # for a message

    def wait(self) -> None:
        """Returns when all processes have called this."""

    def any(self, flag: bool) -> bool:
        """Returns whether `flag` is set in any process; all must call this at the same step."""
        return flag

    def first(self, number: int) -> int:
        """Returns the number that the first process has; all must call this at the same step."""
        return number

    def gathered(self, numbers: list[float] | np.ndarray) -> np.ndarray:
        """Returns the numbers of all processes, float64 `(processes, numbers)`; all must call this at the same step."""
        return np.asarray(numbers, np.float64)[None]

    def see(self, path: pathlib.Path) -> None:
        """Waits for a file of the workdir that the first process has written; network file systems show it late."""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Turns what TensorFlow raises when another process has ended into a `ConnectionError`."""
        yield


def of(strategy: tf.distribute.Strategy) -> OneProcess:
    """Returns the processes of a strategy; several only for `MultiWorkerMirroredStrategy`."""
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict() if resolver else {}
    if "chief" not in jobs and len(jobs.get("worker", [])) <= 1:
        return OneProcess()
    from elmo_tf.training.workers import Workers  # noqa: PLC0415 - a run in one process does not need it

    return Workers(strategy)
