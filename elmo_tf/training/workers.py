"""Several processes that train one model: who writes, what they agree on, and what happens when one ends."""

import contextlib
import logging
import os
import threading
from collections.abc import Iterator

import tensorflow as tf

from elmo_tf.errors import InputError

VARIABLE = "TF_CONFIG"  # environment variable, in which TensorFlow finds the cluster

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
    def is_chief(self) -> bool:
        """Whether this process writes the files and the log."""
        return self.index == 0

    def wait(self) -> None:
        """Returns when all processes have called this."""
        if self.count > 1:
            _log.info("worker %d of %d: waiting for the others", self.index, self.count)
            # In a thread, because Python handles Ctrl-C only between two operations of its main thread.
            thread = threading.Thread(target=self.agree, args=("", 0), daemon=True)
            thread.start()
            while thread.is_alive():
                thread.join(0.2)

    def any(self, flag: bool) -> bool:
        """Returns whether `flag` is set in any process; all have to ask at the same step."""
        return flag if self.count == 1 else any(self._numbers(int(flag)))

    def agree(self, name: str, number: int) -> None:
        """Raises `InputError` unless all processes call this with the same number."""
        if self.count > 1 and len(set(numbers := self._numbers(number))) > 1:
            raise InputError(
                "workdir",
                f"the same {name} in all workers",
                f"{', '.join(map(str, numbers))}; the workdir has to be on a file system that they share",
            )

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Turns what TensorFlow raises when another process has ended into a `ConnectionError`."""
        try:
            yield
        except _GONE as error:
            if self.count == 1:
                raise
            reason = str(error.message).splitlines()[-1]
            raise ConnectionError(
                f"worker {self.index} of {self.count}: another worker has ended ({reason}); "
                "start all of them again with the same commands, they resume from the newest checkpoint"
            ) from error

    def _numbers(self, number: int) -> list[int]:
        gathered = self._gather(tf.constant([number]))
        return self._strategy.experimental_local_results(gathered)[0].numpy().tolist()

    def _gathered(self, numbers):
        # The identity places the value on the replica's device, as a collective requires.
        return self._strategy.run(lambda: tf.distribute.get_replica_context().all_gather(tf.identity(numbers), 0))
