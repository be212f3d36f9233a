"""LSTMP: contract, values and gradients against float64, and how it treats time."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.lstmp import LSTMP
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


def new_layer(kind="both clips", product_dtype="float32"):
    projection_dim, cell_clip, proj_clip = KINDS[kind]
    layer = LSTMP(UNITS, projection_dim, cell_clip, proj_clip, product_dtype)
    layer.build((None, None, INPUT_DIM))
    return checks.randomize(layer)


def _inputs(layer):
    """Inputs and an initial state that is not zero."""
    random = np.random.default_rng(0)
    sizes = ((BATCH, TIME, INPUT_DIM), (BATCH, UNITS), (BATCH, layer.projection_dim))
    inputs, cell, recurrent = (random.uniform(-0.3, 0.3, size).astype(np.float32) for size in sizes)
    return inputs * 5, (cell, recurrent)


def _reference(layer, inputs, state):
    weights = float64.weights_of_lstmp(layer)
    outputs, final = float64.lstmp(inputs.swapaxes(0, 1), state, *weights, layer.cell_clip, layer.proj_clip)
    return outputs.swapaxes(0, 1), final


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_values_equal_the_reference(kind, training):
    layer = new_layer(kind)
    inputs, state = _inputs(layer)
    outputs, expected = layer(inputs, state, training=training), _reference(layer, inputs, state)
    assert (layer.projection_kernel is None) == (kind == "no projection")
    for array, other in zip(tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True):
        assert array.dtype == tf.float32
        np.testing.assert_allclose(array, other, **checks.TOLERANCE)


def test_both_clips_are_reached_and_kept():
    layer = new_layer()
    inputs, state = _inputs(layer)
    outputs, (cell, _) = layer(inputs, state)
    assert 0.1 < np.mean(np.abs(cell) == np.float32(0.4)) < 1
    assert 0.1 < np.mean(np.abs(outputs) == np.float32(0.3)) < 1
    free, (free_cell, _) = new_layer("plain")(inputs, state)
    assert np.abs(free).max() > 0.6
    assert np.abs(free_cell).max() > 0.8
    unprojected = new_layer("no projection")
    assert np.abs(unprojected(*_inputs(unprojected))[0]).max() > 0.01  # no projection to clip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_differences_in_float64(kind, training):
    layer = new_layer(kind)
    inputs, state = _inputs(layer)
    inputs = inputs[:, :6]
    random = np.random.default_rng(2)
    sizes = ((BATCH, 6, layer.projection_dim), (BATCH, UNITS), (BATCH, layer.projection_dim))
    upstream = [random.normal(size=size).astype(np.float32) for size in sizes]

    def total(outputs, final, add):
        return sum(add(part * weight) for part, weight in zip((outputs, *final), upstream, strict=True))

    given = [tf.constant(array) for array in (inputs, *state)]
    variables = [variable.value for variable in layer.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss = total(*layer(given[0], tuple(given[1:]), training=training), tf.reduce_sum)
    gradients = tape.gradient(loss, [*given, *variables])

    def reference_loss(inputs, cell, recurrent, *weights):
        weights = (*weights, None)[:3]
        outputs, final = float64.lstmp(
            inputs.swapaxes(0, 1), (cell, recurrent), *weights, layer.cell_clip, layer.proj_clip
        )
        return total(outputs.swapaxes(0, 1), final, np.sum)

    arrays = [np.asarray(array, np.float64) for array in (*given, *variables)]
    checks.assert_gradients(reference_loss, arrays, [gradient.numpy() for gradient in gradients])


def test_it_runs_in_a_graph_that_does_not_know_batch_or_time():
    layer = new_layer()
    inputs, state = _inputs(layer)
    anything = [tf.TensorSpec((None, None, INPUT_DIM)), tf.TensorSpec((None, UNITS)), tf.TensorSpec((None, 7))]
    run = tf.function(lambda *given: layer(given[0], given[1:])[0], input_signature=anything)
    np.testing.assert_allclose(run(inputs, *state), layer(inputs, state)[0], **checks.TOLERANCE)


@checks.bfloat16_products
@pytest.mark.parametrize("training", [False, True])
def test_bfloat16_products_stay_near_and_leave_float32_results(training):
    exact, close = new_layer("plain"), new_layer("plain", "bfloat16")
    inputs, state = _inputs(exact)
    outputs, (cell, recurrent) = close(inputs, state, training=training)
    assert outputs.dtype == cell.dtype == recurrent.dtype == tf.float32
    difference = np.abs(outputs - exact(inputs, state)[0])
    assert 0 < difference.max() < checks.BFLOAT16
    gradients = [
        checks.gradients(layer, lambda layer=layer: tf.reduce_sum(layer(inputs, state, training=training)[0]))
        for layer in (exact, close)
    ]
    for gradient, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == np.float32
        assert np.linalg.norm(gradient - rounded) < checks.BFLOAT16 * np.linalg.norm(gradient)


def test_nan_stays_nan():
    layer = new_layer()
    inputs, (cell, recurrent) = _inputs(layer)
    inputs[1, 3, 0] = np.nan
    outputs, (last_cell, _) = layer(inputs, (cell, recurrent), training=True)
    np.testing.assert_array_equal(np.isnan(outputs).any(-1), np.arange(TIME) >= np.array([[TIME], [3], [TIME]]))
    np.testing.assert_array_equal(np.isnan(last_cell).any(-1), [False, True, False])
