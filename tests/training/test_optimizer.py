"""Adagrad and Adam against NumPy float64, Muon against Keras's, on one replica and on two."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.config import TrainConfig
from elmo_tf.model.fast import BiLM
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training.optimizer import Adagrad, Adam, Muon
from tests import checks
from tests.helpers import slow, two_cpus

DENSE, ROWS = np.array([3.0, -4.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def steps(strategy, make, starts, replicas_gradients, learning_rate=0.1):
    """Makes an optimizer's step for each entry of `replicas_gradients`.

    An entry has an array, or a pair of values and indices, for each variable; their first dimension is the replica.

    Returns:
        the variables, the slots by name, and the last norm.
    """
    with strategy.scope():
        variables = [tf.Variable(start, dtype=tf.float32) for start in starts]
        optimizer = make(variables)

    def of_replica(gradient, shape):
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        if isinstance(gradient, tuple):
            values, indices = (tf.gather(part, number) for part in gradient)
            return tf.IndexedSlices(values, indices, shape)
        return tf.gather(gradient, number)

    @tf.function
    def run(gradients):
        def replica():
            return optimizer.apply(
                [of_replica(gradient, start.shape) for gradient, start in zip(gradients, starts, strict=True)]
            )

        return strategy.run(replica)

    for number, gradients in enumerate(replicas_gradients):
        optimizer.set_learning_rate(learning_rate, number)
        norm = run([_constant(gradient) for gradient in gradients])
    slots = {name: [value.numpy() for value in slot] for name, slot in optimizer.slots.items()}
    return [v.numpy() for v in variables], slots, float(strategy.experimental_local_results(norm)[0])


def _constant(gradient):
    if isinstance(gradient, tuple):
        return tf.constant(gradient[0], tf.float32), tf.constant(gradient[1])
    return tf.constant(gradient, tf.float32)


def adagrad_step(variables, accumulators, gradients, learning_rate, clip_norm):
    """One clip by the global norm of all gradients, then Adagrad without epsilon; returns variables, accumulators."""
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    gradients = [gradient * min(1, clip_norm / norm) for gradient in gradients]
    accumulators = [a + g**2 for a, g in zip(accumulators, gradients, strict=True)]
    moves = [learning_rate * g / np.sqrt(a) for g, a in zip(gradients, accumulators, strict=True)]
    return [v - move for v, move in zip(variables, moves, strict=True)], accumulators


def lazy_adam_step(variables, moments, gradients, step, learning_rate, beta_1, beta_2, clip_norm):
    """One clip by the global norm, then Adam for the rows whose gradient is not all zero; returns variables, moments.

    `moments` are the lists of means and squares; `step` the number of steps before.
    """
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))
    updated, means, squares = [], [], []
    for v, mean, square, gradient in zip(variables, *moments, gradients, strict=True):
        g = gradient * min(1.0, clip_norm / norm)
        used = g != 0 if g.ndim == 1 else np.any(g != 0, -1, keepdims=True)
        means.append(np.where(used, beta_1 * mean + (1 - beta_1) * g, mean))
        squares.append(np.where(used, beta_2 * square + (1 - beta_2) * g**2, square))
        m, s = means[-1] / (1 - beta_1 ** (step + 1)), squares[-1] / (1 - beta_2 ** (step + 1))
        updated.append(v - learning_rate * np.where(used, m / (np.sqrt(s) + 1e-8), 0.0))
    return updated, [means, squares]


def orthogonal(matrix):
    """Muon's five Newton-Schulz steps on a matrix of at most as many rows as columns, with Jordan's coefficients."""
    matrix = matrix / np.linalg.norm(matrix)
    for _ in range(5):
        gram = matrix @ matrix.T
        matrix = 3.4445 * matrix + (-4.7750 * gram + 2.0315 * gram @ gram) @ matrix
    return matrix


ON_ONE = ([[3.0, 4.0]], ([[[1.0, 1.0], [2.0, 0.0], [0.5, 0.5]]], [[2, 0, 2]]))  # row 2 twice, row 1 never
ON_TWO = ([[1.0, 0.0], [2.0, 4.0]], ([[[1.0, 1.0]], [[2.0, 2.0]]], [[0], [0]]))  # both replicas touch row 0


@pytest.mark.parametrize(
    ("gradients", "rows", "clip_norm"),
    [
        (ON_ONE, [[2.0, 0.0], [0.0, 0.0], [1.5, 1.5]], 1.0),
        (ON_ONE, [[2.0, 0.0], [0.0, 0.0], [1.5, 1.5]], 100.0),
        (ON_TWO, [[3.0, 3.0], [0.0, 0.0], [0.0, 0.0]], 2.0),
    ],
)
def test_a_step_is_the_references_adds_gradients_before_the_clip_and_leaves_other_rows_alone(
    gradients, rows, clip_norm
):
    strategy = two_cpus() if gradients is ON_TWO else tf.distribute.MirroredStrategy(["CPU:0"])
    config = TrainConfig(clip_norm=clip_norm)
    updated, slots, norm = steps(strategy, lambda v: Adagrad(v, config), [DENSE, ROWS], [gradients], 0.2)
    accumulators = slots["accumulators"]
    ones, dense = [np.ones(2), np.ones((3, 2))], np.array([3.0, 4.0])
    variables, wanted = adagrad_step([DENSE, ROWS], ones, [dense, np.array(rows)], 0.2, clip_norm)
    checks.assert_all_close(updated + accumulators, variables + wanted, **checks.FEW)
    unused = ~np.any(rows, axis=1)
    np.testing.assert_array_equal(updated[1][unused], ROWS[unused])
    np.testing.assert_array_equal(accumulators[1][unused], 1)
    # The norm is that before the clip, with duplicates added up.
    assert norm == pytest.approx(np.sqrt(25 + np.sum(np.square(rows))), rel=checks.FEW["rtol"])


def test_adam_is_the_references_on_one_replica_and_on_two():
    on_one = [
        ([[3.0, 4.0]], ([[[1.0, 1.0], [2.0, 0.0], [0.5, 0.5]]], [[2, 0, 2]])),
        ([[0.5, -1.0]], ([[[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]]], [[1, 2, 1]])),
    ]
    on_two = [  # the same sums
        ([[1.0, 4.0], [2.0, 0.0]], ([[[1.0, 1.0], [2.0, 0.0]], [[0.5, 0.5], [0.0, 0.0]]], [[2, 0], [2, 0]])),
        ([[0.5, 0.0], [0.0, -1.0]], ([[[1.0, -1.0]], [[0.0, 2.0]]], [[1], [2]])),
    ]
    dense, rows, moments = DENSE, ROWS, [[np.zeros(2), np.zeros((3, 2))] for _ in range(2)]
    sums = [
        (np.array([3.0, 4.0]), np.array([[2.0, 0.0], [0.0, 0.0], [1.5, 1.5]])),
        (np.array([0.5, -1.0]), np.array([[0.0, 0.0], [1.0, -1.0], [0.0, 2.0]])),
    ]
    for number, gradients in enumerate(sums):
        (dense, rows), moments = lazy_adam_step(
            [dense, rows], moments, gradients, number, learning_rate=0.1, beta_1=0.8, beta_2=0.95, clip_norm=4.0
        )
    config = TrainConfig(beta_1=0.8, beta_2=0.95, clip_norm=4.0)
    for strategy, gradients in ((tf.distribute.MirroredStrategy(["CPU:0"]), on_one), (two_cpus(), on_two)):
        updated, slots, _ = steps(strategy, lambda v: Adam(v, config), [DENSE, ROWS], gradients)
        checks.assert_all_close(
            [*updated, *slots["means"], *slots["squares"]], [dense, rows, *moments[0], *moments[1]], **checks.FEW
        )


# A Newton-Schulz step multiplies what is off before it by 3.4445 at most; a sum has 48 terms at most.
ORTHOGONAL = {"rtol": 0, "atol": checks.rounding(48, scale=3.4445**5, steps=5)}


@pytest.mark.parametrize("shape", [(16, 48), (48, 16), (24, 24), (1, 5)])
def test_an_orthogonal_matrix_has_the_singular_vectors_and_no_large_or_small_singular_value(shape):
    random = np.random.default_rng(0)
    left, _, right = np.linalg.svd(random.normal(size=shape), full_matrices=False)
    matrix = 30.0 * (left * np.geomspace(1.0, 0.01, min(shape))) @ right
    result = optimizers.orthogonal(tf.constant(matrix, tf.float32)).numpy()
    wanted = orthogonal(matrix) if shape[0] <= shape[1] else orthogonal(matrix.T).T
    np.testing.assert_allclose(result, wanted, **ORTHOGONAL)
    inner = left.T @ result @ right.T
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), **ORTHOGONAL)
    assert np.all((np.diag(inner) > 0.6) & (np.diag(inner) < 1.3))
    # A matrix of zeros and one of rank 1 stay finite.
    assert not optimizers.orthogonal(tf.zeros(shape)).numpy().any()
    of_ones = optimizers.orthogonal(tf.ones(shape)).numpy()
    assert np.isfinite(of_ones).all()
    np.testing.assert_allclose(of_ones, np.full(shape, of_ones[0, 0]), **ORTHOGONAL)


@pytest.mark.parametrize(
    ("shape", "weight_decay"), [((5, 10), 0.0), ((10, 5), 0.5), slow((6, 6), 0.5), slow((4, 6), 0.0)]
)
def test_muon_moves_each_block_of_a_matrix_and_a_vector_as_keras_muon_does(shape, weight_decay, monkeypatch):
    monkeypatch.setattr(Muon, "BLOCK", 4)

    def blocks(matrix):
        """Returns the two blocks of a matrix of more than four rows and columns, or the matrix, with long rows."""
        wide = matrix if shape[0] < shape[1] else matrix.T
        return np.array_split(wide, 2) if len(wide) > 4 else [wide]

    random = np.random.default_rng(0)
    start = random.normal(size=shape)
    parts = random.normal(size=(3, 2, *shape)), random.normal(size=(3, 2, 2))  # of three steps and two replicas
    wanted = [keras.Variable(array, dtype="float32") for array in (*blocks(start), DENSE)]
    optimizer = keras.optimizers.Muon(
        0.1,
        adam_beta_1=0.8,
        adam_beta_2=0.95,
        adam_weight_decay=0.0,
        weight_decay=weight_decay,
        epsilon=1e-8,
        rms_rate=0.3,
    )
    optimizer.build(wanted)
    for matrix, vector in zip(*(part.sum(1) for part in parts), strict=True):
        scale = min(1.0, 4.0 / np.sqrt(np.sum(matrix**2) + np.sum(vector**2)))
        optimizer.apply([tf.constant(scale * gradient, tf.float32) for gradient in (*blocks(matrix), vector)])
    config = TrainConfig(muon_scale=0.3, muon_weight_decay=weight_decay, beta_1=0.8, beta_2=0.95, clip_norm=4.0)
    on_one = zip(*(part.sum(1, keepdims=True) for part in parts), strict=True)
    on_two = zip(*parts, strict=True)
    for strategy, gradients in ((tf.distribute.MirroredStrategy(["CPU:0"]), on_one), (two_cpus(), on_two)):
        updated, slots, _ = steps(strategy, lambda v: Muon(v, config, [0]), [start, DENSE], gradients)
        checks.assert_all_close(blocks(updated[0]), [block.numpy() for block in wanted[:-1]], **ORTHOGONAL)
        np.testing.assert_allclose(updated[1], wanted[-1].numpy(), **checks.FEW)
        assert slots["squares"][0].shape == () and slots["squares"][1].shape == (2,)


@pytest.mark.parametrize("projection", [8, 16])  # with and without a projection of the token vector
def test_muon_is_for_the_matrices_of_hidden_layers(projection):
    char_cnn = config_lib.CharCNNConfig(embedding_dim=4, filters=((1, 8), (2, 8)), num_highway=1)
    model = config_lib.ModelConfig(char_cnn, config_lib.LSTMConfig(units=16, projection_dim=projection))
    bilm = BiLM(model, 20)
    layers = [f"{direction}_{number}" for direction in ("forward", "backward") for number in (0, 1)]
    wanted = {"char_cnn/highway_0/gate_kernel", "char_cnn/highway_0/transform_kernel"}
    wanted |= {f"{layer}/kernel" for layer in layers}
    if projection == 8:
        wanted |= {f"{layer}/projection_kernel" for layer in layers} | {"char_cnn/projection/kernel"}
    assert {weight.path for weight in bilm.hidden_matrices} == wanted
    optimizer = optimizers.from_config(TrainConfig(optimizer="muon"), bilm)
    scalars = [square.shape.rank == 0 for square in optimizer.slots["squares"]]
    assert [weight.path in wanted for weight in bilm.trainable_variables] == scalars
