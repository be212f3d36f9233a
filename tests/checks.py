"""Checks that the tests of several layers share."""

import pathlib
from collections.abc import Callable
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.savedmodel import verification, writing

# Of a float32 result of order 1 against float64: sums of up to 100 products, each off by 6e-8 at most.
TOLERANCE = {"rtol": 1e-5, "atol": 3e-6}


def export_unverified(*arguments, **options) -> pathlib.Path:
    """Does what `writing.export` does, without the fresh process at its end, which takes longer than all before it."""
    with mock.patch.object(verification, "problems_in_fresh_process", return_value=[]):
        return writing.export(*arguments, **options)


def randomize(layer: keras.layers.Layer, scale: float = 0.5, seed: int = 0) -> keras.layers.Layer:
    """Draws every weight anew, biases included, so that a weight which is not used is seen."""
    random = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        variable.assign(random.normal(0, scale, variable.shape))
    return layer


def gradients(layer: keras.layers.Layer, loss: Callable[[], tf.Tensor]) -> list[np.ndarray]:
    """Returns the gradients of `loss()` by each of the layer's weights, dense."""
    with tf.GradientTape() as tape:
        value = loss()
    found = tape.gradient(value, [variable.value for variable in layer.trainable_variables])
    return [tf.convert_to_tensor(gradient).numpy() for gradient in found]


def unchanged_by_a_step(layer: keras.layers.Layer, loss: Callable[[], tf.Tensor]) -> list[str]:
    """Takes one step of gradient descent; returns the paths of weights that are what they were."""
    before = [variable.numpy().copy() for variable in layer.trainable_variables]
    for variable, gradient in zip(layer.trainable_variables, gradients(layer, loss), strict=True):
        variable.assign_sub(0.1 * gradient)
    pairs = zip(layer.trainable_variables, before, strict=True)
    return [variable.path for variable, old in pairs if np.array_equal(variable, old)]


def assert_gradients(loss: Callable[..., float], arrays: list[np.ndarray], found: list[np.ndarray]) -> None:
    """Asserts that `found` are the gradients of the float64 function `loss(*arrays)`, by central differences.

    Each is compared along three random directions, in which one wrong element shows.
    """
    random = np.random.default_rng(1)
    step = 1e-6
    for number, array in enumerate(arrays):
        for _ in range(3):
            along = random.normal(size=array.shape)
            ahead, back = (
                loss(*arrays[:number], array + sign * step * along, *arrays[number + 1 :]) for sign in (1, -1)
            )
            expected = (ahead - back) / (2 * step)
            scale = np.sqrt(np.sum(np.square(found[number], dtype=np.float64)))
            np.testing.assert_allclose(np.sum(found[number] * along), expected, rtol=1e-4, atol=1e-5 * scale)
