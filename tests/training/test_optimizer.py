"""Adagrad against NumPy float64, on one replica and on two."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.training.optimizer import Adagrad
from tests import reference
from tests.helpers import two_cpus

DENSE, ROWS = np.array([3.0, -4.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def step(strategy, dense_gradients, sparse_gradients, clip_norm=10.0):
    """Applies one gradient a replica; returns the variables after it, the accumulators and the norm."""
    with strategy.scope():
        variables = [tf.Variable(DENSE, dtype=tf.float32), tf.Variable(ROWS, dtype=tf.float32)]
        optimizer = Adagrad(variables, learning_rate=0.2, initial_accumulator=1.0, clip_norm=clip_norm)

    @tf.function
    def run():
        def replica():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            dense = tf.gather(tf.constant(dense_gradients, tf.float32), number)
            values, indices = (tf.gather(tf.constant(part), number) for part in sparse_gradients)
            sparse = tf.IndexedSlices(tf.cast(values, tf.float32), indices, (3, 2))
            return optimizer.apply([dense, sparse])

        return strategy.run(replica)

    norm = strategy.experimental_local_results(run())[0]
    return [v.numpy() for v in variables], [a.numpy() for a in optimizer.accumulators], float(norm)


def expected(dense_gradient, rows_gradient, clip_norm):
    """The reference's step for the summed, dense gradients."""
    start = [np.ones(2), np.ones((3, 2))]
    return reference.adagrad_step([DENSE, ROWS], start, [dense_gradient, rows_gradient], 0.2, clip_norm)


@pytest.mark.parametrize("clip_norm", [1.0, 100.0])
def test_a_step_is_the_references(clip_norm):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    sparse = ([[[1.0, 1.0], [2.0, 0.0], [0.5, 0.5]]], [[2, 0, 2]])  # row 2 twice, row 1 never
    found, accumulators, norm = step(strategy, [[3.0, 4.0]], sparse, clip_norm)
    rows = np.array([[2.0, 0.0], [0.0, 0.0], [1.5, 1.5]])
    variables, wanted_accumulators = expected(np.array([3.0, 4.0]), rows, clip_norm)
    for one, other in zip(found + accumulators, variables + wanted_accumulators, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert norm == pytest.approx(np.sqrt(25 + 4 + 4.5), rel=1e-6)  # before the clip, duplicates added up


def test_rows_that_a_step_did_not_use_keep_their_bits():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    found, accumulators, _ = step(strategy, [[0.0, 0.0]], ([[[1.0, 1.0]]], [[1]]))
    np.testing.assert_array_equal(found[1][[0, 2]], ROWS[[0, 2]].astype(np.float32))
    np.testing.assert_array_equal(accumulators[1][[0, 2]], 1.0)


def test_replicas_add_their_gradients_before_the_clip():
    strategy = two_cpus()
    sparse = ([[[1.0, 1.0]], [[2.0, 2.0]]], [[0], [0]])  # both replicas touch row 0
    found, _, norm = step(strategy, [[1.0, 0.0], [2.0, 4.0]], sparse, clip_norm=2.0)
    rows = np.array([[3.0, 3.0], [0.0, 0.0], [0.0, 0.0]])
    variables, _ = expected(np.array([3.0, 4.0]), rows, clip_norm=2.0)
    for one, other in zip(found, variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert norm == pytest.approx(np.sqrt(25 + 18), rel=1e-6)
