"""ScalarMix: contract and values; and the mix that users ask for, as text or as numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.model.scalar_mix import ScalarMix, build_mix, parse_mix
from elmo_tf.reference import scalar_mix
from tests import checks

LAYERS = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(np.float32)  # (batch, layers, time, dim)


def test_values_equal_the_reference_and_one_step_changes_every_weight():
    layer = ScalarMix(3)
    layer.build(LAYERS.shape)
    np.testing.assert_allclose(layer(LAYERS), LAYERS.mean(1), **checks.TOLERANCE)
    layer.scalar_parameters.assign([0.3, -1.0, 2.0])
    layer.gamma.assign(1.7)
    expected = scalar_mix(LAYERS.swapaxes(0, 1).astype(np.float64), np.array([0.3, -1.0, 2.0]), 1.7)
    outputs = layer(LAYERS)
    assert outputs.dtype == tf.float32
    assert outputs.shape == layer.compute_output_shape(LAYERS.shape)
    np.testing.assert_allclose(outputs, expected, **checks.TOLERANCE)
    assert checks.unchanged_by_a_step(layer, lambda: tf.reduce_sum(layer(LAYERS) ** 2)) == []
    fixed = ScalarMix(3, gamma=2.0)
    np.testing.assert_allclose(fixed(LAYERS), 2 * LAYERS.mean(1), **checks.TOLERANCE)
    assert [weight.name for weight in fixed.trainable_weights] == ["scalar_parameters"]
    with pytest.raises(InputError, match=r"^scalar_parameters: expected 3 numbers, one per layer, found \[1.0\]$"):
        ScalarMix(3, [1])


def test_fixed_parameters_hold_inside_a_users_layer_and_a_subclassed_model():
    class Inside:
        def __init__(self):
            super().__init__()
            self.mix = ScalarMix(3, [0.0, 100.0, 0.0])

        def call(self, layers):
            return self.mix(layers)

    class Layer(Inside, keras.layers.Layer):
        pass

    class Model(Inside, keras.Model):
        pass

    inputs = keras.Input(LAYERS.shape[1:])
    for model in (Layer(), Model(), keras.Model(inputs, Layer()(inputs))):
        np.testing.assert_allclose(model(LAYERS), LAYERS[:, 1], **checks.FEW)


@pytest.mark.parametrize(
    ("mix", "weights"),
    [
        ("average", [1 / 3, 1 / 3, 1 / 3]),
        ("top", [0, 0, 1]),
        ("1", [0, 1, 0]),
        (1, [0, 1, 0]),
        ("0,0,0", [1 / 3, 1 / 3, 1 / 3]),
        ("0.1,0.5,-0.2", np.exp([0.1, 0.5, -0.2]) / np.exp([0.1, 0.5, -0.2]).sum()),
        ((0.1, 0.5, -0.2), np.exp([0.1, 0.5, -0.2]) / np.exp([0.1, 0.5, -0.2]).sum()),
        ("1e2, 0,0", [1, 0, 0]),
    ],
)
def test_a_mix_gives_the_layers_their_weights(mix, weights):
    mixed = build_mix(3, mix, 1.0)(tf.reshape(tf.eye(3), (1, 3, 1, 3)))
    np.testing.assert_allclose(mixed[0, 0], weights, **checks.FEW)


@pytest.mark.parametrize(
    "mix",
    ["", "Top", "3", "-1", "0.5", "1,2", "1,2,3,4", "1,,2", "a,b,c", "nan,0,0", "0,inf,0", "0,0,1e39"]  # noqa: RUF005 - one line of text, one of others
    + [3, -1, True, None, [1.0], [0.0, 1.0, np.nan], np.array([0.0, np.inf, 0.0])],
)
def test_a_mix_that_is_none_is_refused(mix):
    with pytest.raises(InputError) as caught:
        parse_mix(mix, 3)
    expected = "average, top, a layer from 0 to 2 or 3 finite numbers, one per layer"
    assert str(caught.value) == f"mix: expected {expected}, found {mix!r}"
