"""Adagrad and Adam against NumPy float64, on one replica and on two."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.training.optimizer import Adagrad, Adam
from tests import checks, reference
from tests.helpers import two_cpus

DENSE, ROWS = np.array([3.0, -4.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def step(strategy, dense_gradients, sparse_gradients, clip_norm=10.0):
    """Applies one gradient a replica; returns the variables after it, the accumulators and the norm."""
    with strategy.scope():
        variables = [tf.Variable(DENSE, dtype=tf.float32), tf.Variable(ROWS, dtype=tf.float32)]
        optimizer = Adagrad(variables, step_size=0.2, initial_accumulator=1.0, clip_norm=clip_norm)

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
    return [v.numpy() for v in variables], [a.numpy() for a in optimizer.slots["accumulators"]], float(norm)


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
        np.testing.assert_allclose(one, other, **checks.FEW)
    assert norm == pytest.approx(np.sqrt(25 + 4 + 4.5), rel=checks.FEW["rtol"])  # before the clip, duplicates added up


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
        np.testing.assert_allclose(one, other, **checks.FEW)
    assert norm == pytest.approx(np.sqrt(25 + 18), rel=checks.FEW["rtol"])


def adam_steps(strategy, replicas_gradients):
    """Makes an Adam step for each entry, `(dense, values, indices)` of every replica; returns variables and moments."""
    with strategy.scope():
        variables = [tf.Variable(DENSE, dtype=tf.float32), tf.Variable(ROWS, dtype=tf.float32)]
        step_size = tf.Variable(0.0)
        optimizer = Adam(variables, step_size, beta_1=0.8, beta_2=0.95, clip_norm=4.0)

    @tf.function
    def run(*gradients):
        def replica():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            dense, values, indices = (tf.gather(part, number) for part in gradients)
            return optimizer.apply([dense, tf.IndexedSlices(values, indices, (3, 2))])

        return strategy.run(replica)

    for number, (dense, values, indices) in enumerate(replicas_gradients):
        step_size.assign(optimizer.step_size_at(0.1, number))
        run(tf.constant(dense, tf.float32), tf.constant(values, tf.float32), tf.constant(indices))
    return [v.numpy() for v in variables], [[v.numpy() for v in slot] for slot in optimizer.slots.values()]


def test_adam_is_the_references_on_one_replica_and_on_two():
    one = [
        ([[3.0, 4.0]], [[[1.0, 1.0], [2.0, 0.0], [0.5, 0.5]]], [[2, 0, 2]]),
        ([[0.5, -1.0]], [[[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]]], [[1, 2, 1]]),
    ]
    two = [  # the same sums
        ([[1.0, 4.0], [2.0, 0.0]], [[[1.0, 1.0], [2.0, 0.0]], [[0.5, 0.5], [0.0, 0.0]]], [[2, 0], [2, 0]]),
        ([[0.5, 0.0], [0.0, -1.0]], [[[1.0, -1.0]], [[0.0, 2.0]]], [[1], [2]]),
    ]
    dense, rows, moments = DENSE, ROWS, [[np.zeros(2), np.zeros((3, 2))] for _ in range(2)]
    sums = [
        (np.array([3.0, 4.0]), np.array([[2.0, 0.0], [0.0, 0.0], [1.5, 1.5]])),
        (np.array([0.5, -1.0]), np.array([[0.0, 0.0], [1.0, -1.0], [0.0, 2.0]])),
    ]
    for number, gradients in enumerate(sums):
        (dense, rows), moments = reference.lazy_adam_step(
            [dense, rows], moments, gradients, number, learning_rate=0.1, beta_1=0.8, beta_2=0.95, clip_norm=4.0
        )
    for strategy, gradients in ((tf.distribute.MirroredStrategy(["CPU:0"]), one), (two_cpus(), two)):
        found, slots = adam_steps(strategy, gradients)
        for value, wanted in zip([*found, *slots[0], *slots[1]], [dense, rows, *moments[0], *moments[1]], strict=True):
            np.testing.assert_allclose(value, wanted, **checks.FEW)
