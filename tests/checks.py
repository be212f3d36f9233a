"""Checks that the tests of several layers share."""

import json
import math
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Iterable
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

from elmo_tf.savedmodel import checksums, contract, verification, writing


def rounding(terms: int, scale: float = 1.0, steps: int = 1) -> float:
    """Returns by how much two float32 evaluations of one formula may differ, as an absolute tolerance.

    A float32 sum of n products is off by at most gamma(n) * sum |x_i y_i| in any order, gamma(n) = n u / (1 - n u),
    u = 2**-24 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Two orders, such as those of two
    instruction sets, differ by twice that. Where signs are mixed, sum |x_i y_i| is about sqrt(n) times the result, but
    rounding errors add up like sqrt(n), not n, and so do those of sums computed one from another (Higham and Mary, A
    New Approach to Probabilistic Rounding Error Analysis). This leaves 2 gamma(n) sqrt(steps) times the result's size.

    Args:
        terms: of the longest sum, the bias included. An exponential or a logarithm counts as 4.
        scale: size of the results, or of the largest intermediate ones if these are larger.
        steps: number of sums that are computed one from another.
    """
    unit = 2.0**-24
    return 2 * terms * unit / (1 - terms * unit) * math.sqrt(steps) * scale


# The micro network: its longest sum is the LSTM's projection. One from another: the convolution, two highway layers and
# the projection, then in each of two LSTM layers the gates and the projection of a few time steps. How many does not
# depend on the sentence: errors of earlier steps fade with the forget gates, sigmoid(1 + f), 0.7 on average, so that
# those of all steps together come to about three times one step's, squared. Counted as 4 steps.
_TERMS, _STEPS = 24 + 1, 4 + 2 * 2 * 4
# For values of order 1 of the micro network, and of layers that are no larger.
TOLERANCE = {"rtol": rounding(_TERMS, steps=_STEPS), "atol": rounding(_TERMS, steps=_STEPS)}
# Relative, for a perplexity: as much as its logarithm, a mean of losses of up to 4 nats, may differ.
PERPLEXITY = rounding(_TERMS, 4, _STEPS)
# For bfloat16 products, relative to the largest value: three standard deviations of a rounding of 2**-8 in each sum.
BFLOAT16 = 3 * 2**-8 * math.sqrt(_STEPS)
# For a few operations on each number, without long sums.
FEW = {"rtol": rounding(8), "atol": rounding(8)}


def gradient_tolerance(expected: np.ndarray) -> dict[str, float]:
    """Returns the tolerance for a gradient of the micro network, an array: backward as many sums as forward."""
    return {"rtol": 0, "atol": rounding(_TERMS, float(np.abs(expected).max()), 2 * _STEPS)}


def _hidden_bfloat16() -> bool:
    """Whether the CPU has bfloat16 instructions that ONEDNN_MAX_CPU_ISA hides from oneDNN, but not from TensorFlow."""
    cpu = pathlib.Path("/proc/cpuinfo")
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in ("", "ALL", "DEFAULT") or not cpu.exists():
        return False
    return re.search(r"\b(avx512_bf16|amx_bf16)\b", cpu.read_text()) is not None


bfloat16_products = pytest.mark.skipif(
    _hidden_bfloat16(),
    reason="TensorFlow crashes in bfloat16 products where ONEDNN_MAX_CPU_ISA hides the CPU's instructions for them",
)


def export_unverified(*arguments, **options) -> pathlib.Path:
    """Does what `writing.export` does, without the fresh process at its end, which takes longer than all before it."""
    with mock.patch.object(verification, "problems_in_fresh_process", return_value=[]):
        return writing.export(*arguments, **options)


def copy_with_tokenizer(savedmodel: pathlib.Path, copy: pathlib.Path, tokenizer: str) -> pathlib.Path:
    """Copies an exported model and has whoever reads its files split sentences so; its graph stays as it is."""
    shutil.copytree(savedmodel, copy)
    file = copy / contract.PROVENANCE_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tokenizer": tokenizer}))
    checksums.write(copy)
    return copy


def assert_all_close(actual: Iterable, expected: Iterable, **tolerance: float) -> None:
    """Asserts that there are as many arrays as expected, each within the tolerance, or equal if there is none."""
    for array, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(array, wanted, **({"rtol": 0} | tolerance))


def gradients_kept() -> int:
    """Returns the number of custom gradients that TensorFlow keeps for good, with their graphs."""
    return len(ops.gradient_registry._registry)


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
    by_weight = tape.gradient(value, [variable.value for variable in layer.trainable_variables])
    return [tf.convert_to_tensor(gradient).numpy() for gradient in by_weight]


def unchanged_by_a_step(layer: keras.layers.Layer, loss: Callable[[], tf.Tensor]) -> list[str]:
    """Takes one step of gradient descent; returns the paths of weights that are what they were."""
    before = [variable.numpy().copy() for variable in layer.trainable_variables]
    for variable, gradient in zip(layer.trainable_variables, gradients(layer, loss), strict=True):
        variable.assign_sub(0.1 * gradient)
    pairs = zip(layer.trainable_variables, before, strict=True)
    return [variable.path for variable, old in pairs if np.array_equal(variable, old)]


def assert_gradients(loss: Callable[..., float], arrays: list[np.ndarray], gradients: list[np.ndarray]) -> None:
    """Asserts that `gradients` are those of the float64 function `loss(*arrays)`, by central differences.

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
            scale = np.sqrt(np.sum(np.square(gradients[number], dtype=np.float64)))
            atol = rounding(_TERMS, scale, 2 * _STEPS)
            np.testing.assert_allclose(np.sum(gradients[number] * along), expected, rtol=0, atol=atol)
