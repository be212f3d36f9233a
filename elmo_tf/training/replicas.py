"""Batch rows divided among the replicas of a strategy."""

from typing import Any

import tensorflow as tf

from elmo_tf.records.windows import Window

Structure = Any  # nested tuples of arrays or tensors


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
        strategy: the replicas.
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
