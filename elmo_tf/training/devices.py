"""The devices that a training uses, and the batch rows that each replica gets."""

import logging
import os
import pathlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Either exists where NVIDIA's driver is installed and a GPU is present.
_NVIDIA = (pathlib.Path("/proc/driver/nvidia/version"), pathlib.Path("/dev/nvidia0"))
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs

_log = logging.getLogger("elmo_tf")

Structure = Any  # nested tuples of arrays or tensors


def all_gpus() -> tf.distribute.Strategy:
    """Returns the strategy with a replica on each visible GPU, or one on the CPU."""
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    return tf.distribute.MirroredStrategy(gpus or ["CPU:0"])


def warn_of_unused_gpus() -> None:
    """Warns if the machine has an NVIDIA GPU that TensorFlow does not see, unless it is hidden on purpose."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in _HIDDEN
    if not hidden and any(path.exists() for path in _NVIDIA) and not tf.config.list_physical_devices("GPU"):
        _log.warning(
            "warning: this machine has an NVIDIA GPU, but TensorFlow does not see it and computes on the CPU; "
            "elmo-tf's extra [gpu] installs the CUDA libraries that it needs"
        )


def names(strategy: tf.distribute.Strategy) -> str:
    """Returns the names of the devices of this process in a strategy, such as `CPU:0`."""
    specs = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
    return ", ".join(f"{spec.device_type}:{spec.device_index}" for spec in specs)


def num_local(strategy: tf.distribute.Strategy) -> int:
    """Returns the number of replicas of this process."""
    # TensorFlow's default strategy does not know its device.
    return 1 if strategy.num_replicas_in_sync == 1 else len(strategy.extended.worker_devices)


def local_rows(strategy: tf.distribute.Strategy, rows: int) -> range:
    """Returns the batch rows of this process's replicas, each of which has `rows`; all workers have the same number."""
    count, resolver = num_local(strategy), strategy.cluster_resolver
    several = count < strategy.num_replicas_in_sync and resolver is not None
    first = count * int(resolver.task_id) if several else 0
    return range(first * rows, (first + count) * rows)


def distribute(
    strategy: tf.distribute.Strategy, part: Callable[[int, int], Structure], rows: int, first: int = 0
) -> Structure:
    """Splits arrays by rows, a part for each replica of this process, in the order of the replicas.

    Args:
        part: returns the arrays from a row of this process up to another, such as `Window.part` or `rows_of(arrays)`.
        rows: of each replica.
        first: number of this process's first row among the rows of all replicas.

    Returns:
        tensors for `strategy.run`: plain ones, as it returns them, if this process has one replica.
    """

    def of_replica(context: tf.distribute.ReplicaContext) -> Structure:
        start = context.replica_id_in_sync_group * rows - first
        return tf.nest.map_structure(tf.constant, part(start, start + rows))

    parts = strategy.experimental_distribute_values_from_function(of_replica)
    if num_local(strategy) == 1:
        return tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], parts)
    return parts


def rows_of(arrays: Structure) -> Callable[[int, int], Structure]:
    """Returns a function that returns some rows of each of the arrays, for `distribute`."""
    return lambda start, stop: tf.nest.map_structure(lambda array: array[start:stop], arrays)


def gathered(values: Structure) -> Structure:
    """Returns the rows of all replicas in the order of the replicas; to be called by each of them, in `strategy.run`.

    TensorFlow gathers in the alphabetical order of the devices' names, in which worker 10 comes before worker 2.
    """
    context = tf.distribute.get_replica_context()

    def gather(value: tf.Tensor) -> tf.Tensor:
        # The identity places the value on the replica's device, as a collective requires.
        return context.all_gather(tf.identity(value), 0)

    # As a float, because TensorFlow keeps integers in the host's memory.
    order = tf.argsort(gather(tf.reshape(tf.cast(context.replica_id_in_sync_group, tf.float32), (1,))))

    def in_order(value: tf.Tensor) -> tf.Tensor:
        rows = gather(value)
        by_replica = tf.reshape(rows, (context.num_replicas_in_sync, -1, *value.shape[1:]))
        return tf.reshape(tf.gather(by_replica, order), tf.shape(rows))

    return tf.nest.map_structure(in_order, values)
