"""The feed-forward network that scores spans and pairs of spans: two hidden ReLU layers, then one output."""

from typing import NamedTuple

import keras
import tensorflow as tf

_stateless = tf.random.experimental
# Integers (2,) each; None: no dropout.
Seeds = tuple[tf.Tensor | None, tf.Tensor | None]


class ScoreWeights(NamedTuple):
    """Kernels and biases."""

    first: tf.Tensor  # (dim, units)
    first_bias: tf.Tensor
    second: tf.Tensor  # (units, units)
    second_bias: tf.Tensor
    last: tf.Tensor  # (units, 1)
    last_bias: tf.Tensor


def add_score_weights(layer: keras.layers.Layer, dim: int, units: int) -> list[keras.Variable]:
    """Adds the weights to a layer and returns them in order; biases are initialized like kernels."""
    shapes = ((dim, units), (units,), (units, units), (units,), (units, 1), (1,))
    pairs = zip(ScoreWeights._fields, shapes, strict=True)
    return [layer.add_weight(name=name, shape=shape, initializer="glorot_uniform") for name, shape in pairs]


def score(
    first_product: tf.Tensor, weights: ScoreWeights, rate: float = 0.0, seed: tf.Tensor | None = None
) -> tf.Tensor:
    """Returns a score for each row, float32 `(...)`.

    `first_product`, float32 `(..., units)`, is the input already multiplied by the first kernel; callers share parts of
    that product. `rate` and `seed`, integers `(2,)`, are those of the dropout after each hidden layer; without a seed
    there is no dropout.
    """
    seeds = split_seed(seed)
    hidden = dropout(tf.nn.relu(first_product + weights.first_bias), rate, seeds[0])
    hidden = tf.nn.relu(tf.tensordot(hidden, weights.second, 1) + weights.second_bias)
    return tf.squeeze(tf.tensordot(dropout(hidden, rate, seeds[1]), weights.last, 1) + weights.last_bias, -1)


def dropout(values: tf.Tensor, rate: float, seed: tf.Tensor | None) -> tf.Tensor:
    """Returns the values after dropout; without a seed, unchanged."""
    return values if seed is None else tf.nn.experimental.stateless_dropout(values, rate, seed)


def next_seeds(seeds: keras.random.SeedGenerator, rate: float, training: bool) -> Seeds:
    """Returns two new seeds if there is dropout."""
    return split_seed(tf.convert_to_tensor(seeds.next()) if training and rate else None)


def split_seed(seed: tf.Tensor | None, number: tf.Tensor | int = 0) -> Seeds:
    """Returns two seeds derived from a seed and a number."""
    if seed is None:
        return None, None
    return tuple(tf.unstack(_stateless.stateless_split(_stateless.stateless_fold_in(seed, number), 2)))
