"""Several processes that train one model: how they meet, what they agree on, and what happens when one ends."""

import contextlib
import faulthandler
import logging
import os
import pathlib
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.training import replicas, signals
from elmo_tf.training.coordination import OneWorker

VARIABLE = "TF_CONFIG"  # environment variable, in which TensorFlow finds the cluster

_MEET_SECONDS = 600  # the most between the starts of the first and the last worker
_JOIN_SECONDS = 120  # for TensorFlow to connect the workers, including the start of its GPUs
_ANSWER_SECONDS = 5  # for a connection to a worker
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


def from_environment() -> tf.distribute.Strategy | None:
    """Returns the strategy for the cluster in `TF_CONFIG`, once all its workers have started; None if that is not set.

    Raises:
        InputError: if its value is not a cluster.
        ConnectionError: if the others have not started after ten minutes.
        KeyboardInterrupt: on SIGINT or SIGTERM while it waits for them.
    """
    if not os.environ.get(VARIABLE):
        return None
    try:
        index, addresses = _place(tf.distribute.cluster_resolver.TFConfigClusterResolver())
        me = f"worker {index} of {len(addresses)}"
        cluster = _Cluster(index, addresses) if addresses else None
        with signals.terminable(), contextlib.ExitStack() as stack:
            if len(addresses) > 1:
                _meet(me, addresses[index], addresses)
                stack.enter_context(_ending_if_not_joined(me))
            return tf.distribute.MultiWorkerMirroredStrategy(cluster)
    except tf.errors.OpError as error:
        raise ConnectionError(f"{me}: cannot join the others ({type(error).__name__})") from error
    except RuntimeError as error:
        raise InputError(VARIABLE, "a cluster that is joined before TensorFlow computes anything", error) from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(VARIABLE, "a cluster of workers and this one's index", error) from error


class _Cluster(tf.distribute.cluster_resolver.TFConfigClusterResolver):
    """The cluster in `TF_CONFIG`; a chief is the first worker."""

    def __init__(self, index: int, addresses: list[str]):
        super().__init__(task_type="worker", task_id=index)
        self._addresses = addresses

    def cluster_spec(self):
        return tf.train.ClusterSpec({"worker": self._addresses})


def _meet(me: str, mine: str, addresses: list[str]) -> None:
    """Waits until all workers have started; while TensorFlow waits for them, signals have no effect.

    Each worker listens at its address until it has reached all others at theirs; then TensorFlow listens there.
    """
    others = [address for address in addresses if address != mine]
    _log.info("%s: waiting for the others at %s", me, ", ".join(others))
    deadline = time.monotonic() + _MEET_SECONDS
    try:
        server = _listening(_host_and_port(mine)[1])
    except OSError as error:
        raise ConnectionError(f"{me}: cannot listen at {mine} ({os.strerror(error.errno)})") from error
    with server:
        server.settimeout(_POLL_SECONDS)
        # All must answer in one round: one that answered before may have been stopped since.
        while missing := [address for address in others if not _answers(address)]:
            if time.monotonic() > deadline:
                where = ", ".join(missing)
                raise ConnectionError(f"{me}: no worker at {where} for {_MEET_SECONDS} s; start all of them")
            with contextlib.suppress(TimeoutError):
                for _ in addresses:
                    server.accept()[0].close()


@contextlib.contextmanager
def _ending_if_not_joined(me: str) -> Iterator[None]:
    """Ends the process, with status 1, if the block takes too long, and at once on SIGINT.

    In the block, TensorFlow waits for all workers, even for one that has ended since they met. Meanwhile no Python code
    runs and SIGTERM is ignored.
    """
    _log.info("%s: joining the others; if that takes more than %d s, this process ends", me, _JOIN_SECONDS)
    with open(os.devnull, "w") as nowhere, signals.handling(signal.SIGINT, signal.SIG_DFL):
        faulthandler.dump_traceback_later(_JOIN_SECONDS, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _listening(port: int) -> socket.socket:
    """Returns a socket that listens at the port on all addresses, including IPv6 if available."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _answers(address: str) -> bool:
    """Returns whether a process listens at the address."""
    with contextlib.suppress(OSError), socket.create_connection(_host_and_port(address), timeout=_ANSWER_SECONDS):
        return True
    return False


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)  # an IPv6 address is in brackets


def _place(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> tuple[int, list[str]]:
    """Returns the index of this process among those that train, and the addresses of all; a chief is the first."""
    jobs, task = resolver.cluster_spec().as_dict(), resolver.task_type
    if jobs and task not in ("chief", "worker"):
        raise ValueError(f"a task of type {task}")
    chief = jobs.get("chief", [])
    index = int(resolver.task_id or 0) + (len(chief) if task == "worker" else 0)
    return index, [*chief, *jobs.get("worker", [])]


class Workers(OneWorker):
    """The processes of a `MultiWorkerMirroredStrategy`; the methods are described in `OneWorker`.

    Args:
        strategy: the devices to train on.
    """

    is_alone = False

    def __init__(self, strategy: tf.distribute.Strategy):
        resolver = strategy.cluster_resolver
        jobs = resolver.cluster_spec().as_dict()
        if "chief" in jobs:
            raise InputError("strategy", "a cluster of workers, as `workers.from_environment` makes of any", "a chief")
        self._strategy = strategy
        self.count = len(jobs["worker"])
        self.index = int(resolver.task_id)
        self.is_chief = self.index == 0
        self._me = f"worker {self.index} of {self.count}"
        self._gather = tf.function(lambda numbers: strategy.run(replicas.gathered, args=(numbers,)), autograph=False)

    def info(self, message: str, *arguments: object) -> None:
        if self.is_chief:
            _log.info(message, *arguments)

    def wait(self) -> None:
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
        return bool(self.gathered([flag]).any())

    def any_every(self, period: int, number: int, flag: bool) -> bool:
        # Asking takes a round trip and waits for the device.
        return number % period == 0 and self.any(flag)

    def gathered(self, numbers: list[float] | np.ndarray) -> np.ndarray:
        mine = np.asarray(numbers, np.float64)[None]
        gathered = self._strategy.experimental_local_results(self._gather(tf.constant(mine)))[0].numpy()
        # Every replica of a process contributes a row.
        return gathered[:: len(gathered) // self.count]

    def wait_for_file(self, path: pathlib.Path) -> None:
        deadline = time.monotonic() + _FILE_SECONDS
        if not path.exists():
            _log.info("%s: waiting for %s to appear", self._me, path)
        while not path.exists():
            if time.monotonic() > deadline:
                found = f"no file after {_FILE_SECONDS} s"
                raise InputError(str(path), "a file on a file system that all workers share", found)
            time.sleep(_POLL_SECONDS)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        try:
            yield
        except _GONE as error:
            # An internal error may have any cause.
            if isinstance(error, tf.errors.InternalError) and not _OTHERS.search(_NAMES.sub("", error.message)):
                raise
            if _OTHER_SIZE in error.message:
                here = f"{replicas.num_local(self._strategy)} at {self._me}, a different number elsewhere"
                raise InputError("strategy", "as many devices for each worker", here) from error
            raise ConnectionError(
                f"{self._me}: another worker has ended ({type(error).__name__}), and its log says why; "
                "start all of them again with the same commands: they resume from the newest checkpoint, if any"
            ) from error
