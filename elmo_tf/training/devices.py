"""The devices that a training uses: their precision, and the batch rows that each replica gets."""

import dataclasses
import logging
import os
import pathlib
from typing import Any

import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.model import operations
from elmo_tf.records.windows import Window

# Either exists where NVIDIA's driver is installed and a GPU is present.
_NVIDIA = (pathlib.Path("/proc/driver/nvidia/version"), pathlib.Path("/dev/nvidia0"))
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs

AUTO = "auto"  # the precision that `with_precision` replaces
_AMPERE = (8, 0)  # compute capability of the first GPUs with products of bfloat16 and TF32

_log = logging.getLogger("elmo_tf")

Structure = Any  # nested tuples of arrays or tensors


def all_gpus() -> tf.distribute.Strategy:
    """Returns the strategy with a replica on each visible GPU, or one on the CPU."""
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    return tf.distribute.MirroredStrategy(gpus or ["CPU:0"])


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """Returns the number of processes that train together; only a `MultiWorkerMirroredStrategy` may have several."""
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict() if resolver else {}
    return max(1, len(jobs.get("chief", [])) + len(jobs.get("worker", [])))


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the first of those that train together, which writes the files."""
    return num_workers(strategy) == 1 or int(strategy.cluster_resolver.task_id) == 0


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


def product_precision() -> str:
    """Returns the actual precision of float32 matrix products on the visible devices, which is TF32 on some GPUs."""
    is_tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    return "TF32" if is_tf32 and any(capability >= _AMPERE for capability in _capabilities()) else "float32"


def with_precision(config: Config, stored: Config | None = None) -> Config:
    """Replaces the precision "auto" by float32 or bfloat16, and logs the reason.

    That is bfloat16 if all GPUs have bfloat16 products or, without a GPU, if the CPU has them. A run that resumes uses
    the precision in its `stored` configuration.
    """
    if config.train.precision != AUTO:
        return config
    if stored is not None and stored.train.precision != AUTO:
        return _with_train_precision(config, stored.train.precision)
    if capabilities := _capabilities():
        has_bfloat16 = min(capabilities) >= _AMPERE
        reason = "all GPUs have" if has_bfloat16 else "not all GPUs have"
    else:
        has_bfloat16 = operations.cpu_has_bfloat16()
        reason = "the CPU has" if has_bfloat16 else "the CPU has no"
    precision = "bfloat16" if has_bfloat16 else "float32"
    _log.info("train.precision=auto: %s; %s bfloat16 products", precision, reason)
    return _with_train_precision(config, precision)


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


def distribute(strategy: tf.distribute.Strategy, values: Structure, rows: int, first: int = 0) -> Structure:
    """Splits arrays by rows, a piece for each replica of this process, in the order of the replicas.

    Args:
        values: a window, or arrays, with at least the rows of this process.
        rows: of each replica.
        first: index of the arrays' first row among the rows of all replicas.

    Returns:
        tensors for `strategy.run`: plain ones, as it returns them, if this process has one replica.
    """

    def piece(context: tf.distribute.ReplicaContext) -> Structure:
        start = context.replica_id_in_sync_group * rows - first
        stop = start + rows
        if isinstance(values, Window):
            return tf.nest.map_structure(tf.constant, values.part(start, stop))
        return tf.nest.map_structure(lambda value: tf.constant(value[start:stop]), values)

    pieces = strategy.experimental_distribute_values_from_function(piece)
    if num_local(strategy) == 1:
        return tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], pieces)
    return pieces


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


def _capabilities() -> list[tuple[int, int]]:
    """Returns the compute capability of each visible GPU, (0, 0) if it has none."""
    gpus = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    return [gpu.get("compute_capability", (0, 0)) for gpu in gpus]


def _with_train_precision(config: Config, precision: Any) -> Config:
    return dataclasses.replace(config, train=dataclasses.replace(config.train, precision=precision))
