"""Adagrad, Adam and Muon against NumPy float64 and Keras's Muon, on one replica and on two."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.config import TrainConfig
from elmo_tf.model.bilm import BiLM
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training.optimizer import Adagrad, Adam, Muon
from tests import checks
from tests.helpers import two_cpus
from tests.training import optimizers_in_numpy as reference

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


def step(strategy, dense_gradients, sparse_gradients, clip_norm=10.0):
    """Makes a step of Adagrad; returns the variables after it, the accumulators and the norm."""
    config, gradients = TrainConfig(clip_norm=clip_norm), [[dense_gradients, sparse_gradients]]
    variables, slots, norm = steps(strategy, lambda v: Adagrad(v, config), [DENSE, ROWS], gradients, 0.2)
    return variables, slots["accumulators"], norm


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
    updated, accumulators, norm = step(strategy, *gradients, clip_norm)
    ones, dense = [np.ones(2), np.ones((3, 2))], np.array([3.0, 4.0])
    variables, wanted = reference.adagrad_step([DENSE, ROWS], ones, [dense, np.array(rows)], 0.2, clip_norm)
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
        (dense, rows), moments = reference.lazy_adam_step(
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
    wanted = reference.orthogonal(matrix) if shape[0] <= shape[1] else reference.orthogonal(matrix.T).T
    np.testing.assert_allclose(result, wanted, **ORTHOGONAL)
    inner = left.T @ result @ right.T
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), **ORTHOGONAL)
    assert np.all((np.diag(inner) > 0.6) & (np.diag(inner) < 1.3))


def test_a_matrix_of_zeros_and_one_of_rank_one_stay_finite():
    assert not optimizers.orthogonal(tf.zeros((8, 16))).numpy().any()
    result = optimizers.orthogonal(tf.ones((8, 16))).numpy()
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result, result[0, 0], **ORTHOGONAL)


def muon_steps(strategy, matrix, replicas_gradients, weight_decay):
    """Makes a step of Muon for each entry; returns the variables and the slots."""
    config = TrainConfig(muon_scale=0.3, muon_weight_decay=weight_decay, beta_1=0.8, beta_2=0.95, clip_norm=4.0)
    return steps(strategy, lambda v: Muon(v, config, [0]), [matrix, DENSE], replicas_gradients)[:2]


@pytest.mark.parametrize(("shape", "weight_decay"), [((5, 10), 0.0), ((6, 6), 0.5), ((10, 5), 0.5), ((4, 6), 0.0)])
def test_muon_moves_blocks_of_matrices_by_its_own_rule_and_the_rest_by_adams(shape, weight_decay, monkeypatch):
    monkeypatch.setattr(Muon, "BLOCK", 4)

    def blocks(matrix):
        """Returns the two blocks of a matrix of more than four rows and columns, or the matrix, with long rows."""
        wide = matrix if shape[0] < shape[1] else matrix.T
        return np.array_split(wide, 2) if len(wide) > 4 else [wide]

    random = np.random.default_rng(0)
    start = random.normal(size=shape)
    parts = random.normal(size=(3, 2, *shape)), random.normal(size=(3, 2, 2))  # of three steps and two replicas
    wanted, means, dense, moments = blocks(start), blocks(np.zeros(shape)), DENSE, [[np.zeros(2)], [np.zeros(2)]]
    for number, gradients in enumerate(zip(*(part.sum(1) for part in parts), strict=True)):
        scale = min(1.0, 4.0 / np.sqrt(sum(np.sum(gradient**2) for gradient in gradients)))
        wanted, means = reference.muon_step(wanted, means, blocks(scale * gradients[0]), 0.1, 0.3, weight_decay)
        (dense,), moments = reference.lazy_adam_step(
            [dense], moments, [scale * gradients[1]], number, 0.1, beta_1=0.8, beta_2=0.95, clip_norm=np.inf
        )
    on_one = zip(*(part.sum(1, keepdims=True) for part in parts), strict=True)
    for strategy, steps in (
        (tf.distribute.MirroredStrategy(["CPU:0"]), on_one),
        (two_cpus(), zip(*parts, strict=True)),
    ):
        updated, slots = muon_steps(strategy, start, steps, weight_decay)
        checks.assert_all_close(blocks(updated[0]), wanted, **ORTHOGONAL)
        checks.assert_all_close(blocks(slots["means"][0]), means, **checks.FEW)
        np.testing.assert_allclose(updated[1], dense, **checks.FEW)
        assert slots["squares"][0].shape == () and slots["squares"][1].shape == (2,)


@pytest.mark.parametrize("shape", [(12, 20), (20, 12)])
def test_a_matrix_of_one_block_and_a_vector_move_as_with_keras_muon(shape):
    random = np.random.default_rng(0)
    start, gradients = random.normal(size=shape), random.normal(size=(3, *shape))
    vectors = random.normal(size=(3, 2))
    updated, _ = muon_steps(
        tf.distribute.MirroredStrategy(["CPU:0"]),
        start,
        list(zip(gradients[:, None], vectors[:, None], strict=True)),
        0.5,
    )
    wanted = [keras.Variable(start, dtype="float32"), keras.Variable(DENSE, dtype="float32")]
    optimizer = keras.optimizers.Muon(
        0.1, adam_beta_1=0.8, adam_beta_2=0.95, adam_weight_decay=0.0, weight_decay=0.5, epsilon=1e-8, rms_rate=0.3
    )
    optimizer.build(wanted)
    for matrix, vector in zip(gradients, vectors, strict=True):
        scale = min(1.0, 4.0 / np.sqrt(np.sum(matrix**2) + np.sum(vector**2)))
        optimizer.apply([tf.constant(scale * gradient, tf.float32) for gradient in (matrix, vector)])
    np.testing.assert_allclose(updated[0], wanted[0].numpy(), **ORTHOGONAL)
    np.testing.assert_allclose(updated[1], wanted[1].numpy(), **checks.FEW)


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
