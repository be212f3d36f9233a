"""Several processes that train one model: who writes, what they agree on, and what happens when one ends."""

import contextlib
import json
import logging
import os
import pathlib
import re
import threading
import time
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError

VARIABLE = "TF_CONFIG"  # environment variable, in which TensorFlow finds the cluster

_SEE_SECONDS = 120  # that a file may take to be seen by another worker
_SEE_AGAIN_SECONDS = 0.5
_log = logging.getLogger("elmo_tf")
# What a collective operation raises when another process has ended.
_GONE = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)


def from_environment() -> tf.distribute.Strategy | None:
    """Returns the strategy for the cluster in `TF_CONFIG`; None if that is not set.

    Raises:
        InputError: if its value is not a cluster.
    """
    if not os.environ.get(VARIABLE):
        return None
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, tf.errors.OpError) as error:
        raise InputError(VARIABLE, "a cluster of workers and this one's index", error) from error


def see(path: pathlib.Path, me: str) -> None:
    """Returns once `path`, which the first worker has written, is there; network file systems show it later.

    Args:
        path: a file of the workdir.
        me: this process, for a message.

    Raises:
        InputError: if it is not there after two minutes.
    """
    deadline, reported = time.monotonic() + _SEE_SECONDS, False
    while not path.exists():
        if time.monotonic() > deadline:
            expected = "one on a file system that all workers share, and a preset for all of them if it is new"
            raise InputError("workdir", expected, f"no {path} after waiting for {_SEE_SECONDS} s")
        if not reported:
            _log.info("%s: waiting for %s to appear", me, path)
        reported = True
        time.sleep(_SEE_AGAIN_SECONDS)


def see_before(path: pathlib.Path) -> None:
    """Does `see` before there is a strategy, if `TF_CONFIG` says that this is not the first worker."""
    try:
        index = int(json.loads(os.environ.get(VARIABLE) or "{}")["task"]["index"])
    except (ValueError, KeyError, TypeError):
        return  # what is wrong with it, `from_environment` says
    if index > 0:
        see(path, f"worker {index}")


class Workers:
    """The processes of a strategy; several only for `MultiWorkerMirroredStrategy`.

    Args:
        strategy: the devices to train on.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        resolver = strategy.cluster_resolver
        workers = resolver.cluster_spec().as_dict().get("worker", []) if resolver else []
        self._strategy = strategy
        self.count = max(1, len(workers))
        self.index = int(resolver.task_id) if self.count > 1 else 0
        self._gather = tf.function(self._gathered)

    @property
    def me(self) -> str:
        """This process, for a message."""
        return f"worker {self.index} of {self.count}"

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files and the log."""
        return self.index == 0

    def wait(self) -> None:
        """Returns when all processes have called this."""
        if self.count > 1:
            _log.info("%s: waiting for the others", self.me)
            # In a thread, because Python handles Ctrl-C only between two operations of its main thread.
            failed: list[Exception] = []

            def meet() -> None:
                try:
                    self.gathered([0.0])
                except Exception as error:
                    failed.append(error)

            thread = threading.Thread(target=meet, daemon=True)
            thread.start()
            while thread.is_alive():
                thread.join(0.2)
            if failed:
                raise failed[0]

    def any(self, flag: bool) -> bool:
        """Returns whether `flag` is set in any process; all have to ask at the same step."""
        return flag if self.count == 1 else bool(self.gathered([flag]).any())

    def first(self, number: int) -> int:
        """Returns the number that the first process has; all have to ask at the same step."""
        return number if self.count == 1 else int(self.gathered([number])[0, 0])

    def first_text(self, text: str) -> str:
        """Returns the text that the first process has; all have to ask at the same step."""
        if self.count == 1:
            return text
        numbers = np.zeros(self.first(len(text)))
        if self.is_chief:
            numbers[:] = [ord(character) for character in text]
        return "".join(chr(int(number)) for number in self.gathered(numbers)[0])

    def gathered(self, numbers: list[float] | np.ndarray) -> np.ndarray:
        """Returns the numbers of all processes, float64 `(workers, numbers)`; all have to ask at the same step."""
        mine = np.asarray(numbers, np.float64)[None]
        if self.count == 1:
            return mine
        gathered = self._strategy.experimental_local_results(self._gather(tf.constant(mine)))[0].numpy()
        # Each replica of a process has added its numbers.
        return gathered[:: len(gathered) // self.count]

    def see(self, path: pathlib.Path) -> None:
        """Returns once `path`, which the first worker has written, is there; see the function `see`."""
        see(path, self.me)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Turns what TensorFlow raises when another process has ended into a `ConnectionError`."""
        try:
            yield
        except _GONE as error:
            if self.count == 1:
                raise
            raise ConnectionError(
                f"{self.me}: another worker has ended ({_reason(error)}); "
                "start all of them again with the same commands, they resume from the newest checkpoint"
            ) from error

    def _gathered(self, numbers):
        # The identity places the value on the replica's device, as a collective requires.
        return self._strategy.run(lambda: tf.distribute.get_replica_context().all_gather(tf.identity(numbers), 0))


def _reason(error: tf.errors.OpError) -> str:
    """Returns what TensorFlow says, without the names of operations."""
    lines = re.sub(r"\[\[.*?\]\]|\{\{.*?\}\}|\[Op:.*?\]", "", str(error.message)).splitlines()
    said = [" ".join(line.split()) for line in lines if line.strip()]
    return said[-1] if said else type(error).__name__
