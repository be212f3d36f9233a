"""LSTMP, plain and for training: values and gradients against float64 and against each other, and time."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.config import LSTMConfig
from elmo_tf.model.bilm import LSTMP
from elmo_tf.model.kernels import lstmp_training
from tests import checks, float64

BATCH, TIME, INPUT_DIM, UNITS, PROJECTION_DIM = 3, 20, 5, 12, 7

# (projection_dim, cell_clip, proj_clip); the small clips are reached all the time, see the test that says so.
KINDS = {
    "plain": (PROJECTION_DIM, None, None),
    "both clips": (PROJECTION_DIM, 0.4, 0.3),
    "cell clip": (PROJECTION_DIM, 0.4, None),
    "projection clip": (PROJECTION_DIM, None, 0.3),
    "no projection": (UNITS, 0.4, 0.01),
}


def plain(layer, inputs, state):
    return layer(inputs, state)


def training(layer, inputs, state, dtype="float32"):
    return lstmp_training.run(layer, tf.convert_to_tensor(inputs), state, dtype)


both = pytest.mark.parametrize("run", [plain, training])


def new_layer(kind="both clips", input_dim=INPUT_DIM, units=UNITS):
    projection_dim, cell_clip, proj_clip = KINDS[kind]
    dim = projection_dim if units == UNITS else max(1, units // 2)
    layer = LSTMP(LSTMConfig(units, dim, 1, cell_clip, proj_clip))
    layer.build((None, None, input_dim))
    return checks.randomize(layer)


def _inputs(layer, batch=BATCH, time=TIME, input_dim=INPUT_DIM):
    """Inputs and an initial state that is not zero."""
    random, config = np.random.default_rng(0), layer.config
    sizes = ((batch, time, input_dim), (batch, config.units), (batch, config.projection_dim))
    inputs, cell, recurrent = (random.uniform(-0.3, 0.3, size).astype(np.float32) for size in sizes)
    return inputs * 5, (cell, recurrent)


def _reference(layer, inputs, state, weights):
    clips = layer.config.cell_clip, layer.config.proj_clip
    outputs, final = float64.lstmp(inputs.swapaxes(0, 1), state, *weights, *clips)
    return outputs.swapaxes(0, 1), final


@both
@pytest.mark.parametrize("kind", KINDS)
def test_values_equal_the_reference(kind, run):
    layer = new_layer(kind)
    inputs, state = _inputs(layer)
    outputs, expected = run(layer, inputs, state), _reference(layer, inputs, state, float64.weights_of_lstmp(layer))
    assert (layer.projection_kernel is None) == (kind == "no projection")
    for array, other in zip(tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True):
        assert array.dtype == tf.float32
        np.testing.assert_allclose(array, other, **checks.TOLERANCE)


@both
def test_both_clips_are_reached_and_kept(run):
    layer = new_layer()
    inputs, state = _inputs(layer)
    outputs, (cell, _) = run(layer, inputs, state)
    assert 0.1 < np.mean(np.abs(cell) == np.float32(0.4)) < 1
    assert 0.1 < np.mean(np.abs(outputs) == np.float32(0.3)) < 1
    free, (free_cell, _) = run(new_layer("plain"), inputs, state)
    assert np.abs(free).max() > 0.6
    assert np.abs(free_cell).max() > 0.8
    unprojected = new_layer("no projection")
    assert np.abs(run(unprojected, *_inputs(unprojected))[0]).max() > 0.01  # no projection to clip


def _gradients(layer, run, inputs, state, upstream):
    """The gradients of a weighted sum of outputs and final state by inputs, initial state and weights."""
    given = [tf.constant(array) for array in (inputs, *state)]
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs, final = run(layer, given[0], tuple(given[1:]))
        loss = sum(tf.reduce_sum(part * weight) for part, weight in zip((outputs, *final), upstream, strict=True))
    return [part.numpy() for part in tape.gradient(loss, [*given, *(v.value for v in layer.trainable_variables)])]


def _upstream(layer, batch, time):
    random, config = np.random.default_rng(2), layer.config
    sizes = ((batch, time, config.projection_dim), (batch, config.units), (batch, config.projection_dim))
    return [random.normal(size=size).astype(np.float32) for size in sizes]


@both
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_differences_in_float64(kind, run):
    layer = new_layer(kind)
    inputs, state = _inputs(layer, time=6)
    upstream = _upstream(layer, BATCH, 6)
    gradients = _gradients(layer, run, inputs, state, upstream)

    def reference_loss(inputs, cell, recurrent, *weights):
        outputs, final = _reference(layer, inputs, (cell, recurrent), (*weights, None)[:3])
        return sum(np.sum(part * weight) for part, weight in zip((outputs, *final), upstream, strict=True))

    arrays = [np.asarray(array, np.float64) for array in (inputs, *state, *layer.trainable_variables)]
    checks.assert_gradients(reference_loss, arrays, gradients)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_random_sizes_have_the_values_and_gradients_of_the_plain_layer(kind, seed):
    random = np.random.default_rng(seed)
    batch, time, input_dim = map(int, random.integers(1, (6, 9, 7)))
    layer = new_layer(kind, input_dim)
    inputs, state = _inputs(layer, batch, time, input_dim)
    checks.assert_all_close(
        tf.nest.flatten(training(layer, inputs, state)), tf.nest.flatten(layer(inputs, state)), **checks.TOLERANCE
    )
    upstream = _upstream(layer, batch, time)
    pair = (_gradients(layer, run, inputs, state, upstream) for run in (training, plain))
    for gradient, other in zip(*pair, strict=True):
        np.testing.assert_allclose(gradient, other, **checks.gradient_tolerance(other))


@both
def test_it_runs_in_a_graph_that_does_not_know_batch_or_time(run):
    layer = new_layer()
    inputs, state = _inputs(layer)
    anything = [tf.TensorSpec((None, None, INPUT_DIM)), tf.TensorSpec((None, UNITS)), tf.TensorSpec((None, 7))]
    graph = tf.function(lambda *given: run(layer, given[0], given[1:])[0], input_signature=anything)
    np.testing.assert_allclose(graph(inputs, *state), run(layer, inputs, state)[0], **checks.TOLERANCE)


@checks.bfloat16_products
def test_bfloat16_products_stay_near_and_leave_float32_results():
    layer = new_layer("plain")
    inputs, state = _inputs(layer)
    outputs, (cell, recurrent) = training(layer, inputs, state, "bfloat16")
    assert outputs.dtype == cell.dtype == recurrent.dtype == tf.float32
    assert 0 < np.abs(outputs - layer(inputs, state)[0]).max() < checks.BFLOAT16
    gradients = [
        checks.gradients(layer, lambda dtype=dtype: tf.reduce_sum(training(layer, inputs, state, dtype)[0]))
        for dtype in ("float32", "bfloat16")
    ]
    for gradient, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == np.float32
        assert np.linalg.norm(gradient - rounded) < checks.BFLOAT16 * np.linalg.norm(gradient)


@both
def test_nan_stays_nan(run):
    layer = new_layer()
    inputs, (cell, recurrent) = _inputs(layer)
    inputs[1, 3, 0] = np.nan
    outputs, (last_cell, _) = run(layer, inputs, (cell, recurrent))
    np.testing.assert_array_equal(np.isnan(outputs).any(-1), np.arange(TIME) >= np.array([[TIME], [3], [TIME]]))
    np.testing.assert_array_equal(np.isnan(last_cell).any(-1), [False, True, False])
