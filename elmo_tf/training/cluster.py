"""The cluster in `TF_CONFIG`: how the processes that train one model find each other before TensorFlow joins them."""

import contextlib
import faulthandler
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator

import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.training import signals

VARIABLE = "TF_CONFIG"  # environment variable, in which TensorFlow finds the cluster

_MEET_SECONDS = 600  # longest wait from the first worker's start to the last one's
_JOIN_SECONDS = 120  # for TensorFlow to connect the workers, including GPU start-up
_ANSWER_SECONDS = 5  # for a connection to a worker
_POLL_SECONDS = 0.5
_log = logging.getLogger("elmo_tf")


def from_environment() -> tf.distribute.Strategy | None:
    """Returns the strategy for the cluster in `TF_CONFIG`, once all its workers have started; None without `TF_CONFIG`.

    Raises:
        InputError: if its value is not a cluster.
        ConnectionError: if the others have not started after ten minutes.
        KeyboardInterrupt: on SIGINT or SIGTERM while it waits for them.
    """
    if not os.environ.get(VARIABLE):
        return None
    try:
        index, addresses = _index_and_addresses(tf.distribute.cluster_resolver.TFConfigClusterResolver())
        me = f"worker {index} of {len(addresses)}"
        cluster = _Cluster(index, addresses) if addresses else None
        with signals.terminable(), contextlib.ExitStack() as stack:
            if len(addresses) > 1:
                _wait_for_workers(me, addresses[index], addresses)
                stack.enter_context(_exit_on_timeout(me))
            return tf.distribute.MultiWorkerMirroredStrategy(cluster)
    except tf.errors.OpError as error:
        raise ConnectionError(f"{me}: cannot join the others ({type(error).__name__})") from error
    except RuntimeError as error:
        raise InputError(VARIABLE, f"join the cluster before TensorFlow computes anything ({error})") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(VARIABLE, f"not a cluster of workers and the index of this one ({error!r})") from error


class _Cluster(tf.distribute.cluster_resolver.TFConfigClusterResolver):
    """The cluster in `TF_CONFIG`; a chief is the first worker."""

    def __init__(self, index: int, addresses: list[str]):
        super().__init__(task_type="worker", task_id=index)
        self._addresses = addresses

    def cluster_spec(self) -> tf.train.ClusterSpec:
        return tf.train.ClusterSpec({"worker": self._addresses})


def _wait_for_workers(me: str, own_address: str, addresses: list[str]) -> None:
    """Waits until all workers have started; while TensorFlow waits for them, signals have no effect.

    Each worker listens at its address until it has reached all others at theirs; then TensorFlow listens there.
    """
    others = [address for address in addresses if address != own_address]
    _log.info("%s: waiting for the others at %s", me, ", ".join(others))
    deadline = time.monotonic() + _MEET_SECONDS
    try:
        server = _listening(_host_and_port(own_address)[1])
    except OSError as error:
        raise ConnectionError(f"{me}: cannot listen at {own_address} ({os.strerror(error.errno or 0)})") from error
    with server:
        server.settimeout(_POLL_SECONDS)
        # All must answer in one round: a worker that answered before may have been stopped since.
        while missing := [address for address in others if not _is_listening(address)]:
            if time.monotonic() > deadline:
                absent = ", ".join(missing)
                raise ConnectionError(f"{me}: no worker at {absent} for {_MEET_SECONDS} s; start all of them")
            with contextlib.suppress(TimeoutError):
                for _ in addresses:
                    server.accept()[0].close()


@contextlib.contextmanager
def _exit_on_timeout(me: str) -> Iterator[None]:
    """Ends the process, with status 1, if the block takes too long, and at once on SIGINT.

    In the block, TensorFlow waits for all workers, even for a worker that has ended since they met. Meanwhile no Python
    code runs and SIGTERM is ignored.
    """
    _log.info("%s: joining the others; if that takes more than %d s, this process ends", me, _JOIN_SECONDS)
    with open(os.devnull, "w") as discarded, signals.handling(signal.SIGINT, signal.SIG_DFL):
        faulthandler.dump_traceback_later(_JOIN_SECONDS, exit=True, file=discarded)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _listening(port: int) -> socket.socket:
    """Returns a socket that listens at the port on all addresses, including IPv6 if available."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _is_listening(address: str) -> bool:
    """Returns whether a process listens at the address."""
    with contextlib.suppress(OSError), socket.create_connection(_host_and_port(address), timeout=_ANSWER_SECONDS):
        return True
    return False


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)  # an IPv6 address is in brackets


def _index_and_addresses(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> tuple[int, list[str]]:
    """Returns the index of this process among those that train, and the addresses of all; a chief is the first."""
    jobs, task = resolver.cluster_spec().as_dict(), resolver.task_type
    if jobs and task not in ("chief", "worker"):
        raise ValueError(f"a task of type {task}")
    chief = jobs.get("chief", [])
    index = int(resolver.task_id or 0) + (len(chief) if task == "worker" else 0)
    return index, [*chief, *jobs.get("worker", [])]
