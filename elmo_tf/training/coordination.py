"""What the processes that train one model agree on; a process that trains alone agrees with itself."""

import contextlib
import logging
import pathlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

_log = logging.getLogger("elmo_tf")


class OneWorker:
    """A process that trains alone.

    `workers.Workers` has the same methods for several processes, all of which must call them at the same step.
    """

    is_chief = True  # whether this process writes the files and the log
    is_alone = True

    def info(self, message: str, *arguments: object) -> None:
        """Logs a line, on the chief only."""
        _log.info(message, *arguments)

    def wait(self) -> None:
        """Waits until all workers have called this."""

    def any(self, flag: bool) -> bool:
        """Returns whether `flag` is set on any worker."""
        return flag

    def any_every(self, period: int, number: int, flag: bool) -> bool:
        """Like `any`; several workers ask each other only if `number` is a multiple of `period`."""
        return flag

    def gathered(self, numbers: list[float] | np.ndarray) -> np.ndarray:
        """Returns the numbers of all workers, float64 `(workers, numbers)`."""
        return np.asarray(numbers, np.float64)[None]

    def wait_for_file(self, path: pathlib.Path) -> None:
        """Waits for a file written by the chief (network file systems may show it late)."""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Raises `ConnectionError` if another worker ends during the block."""
        yield


def of(strategy: tf.distribute.Strategy) -> OneWorker:
    """Returns the workers of a strategy; only a `MultiWorkerMirroredStrategy` may have several."""
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict() if resolver else {}
    if "chief" not in jobs and len(jobs.get("worker", [])) <= 1:
        return OneWorker()
    from elmo_tf.training.workers import Workers  # noqa: PLC0415 - a run in one process does not need it

    return Workers(strategy)
