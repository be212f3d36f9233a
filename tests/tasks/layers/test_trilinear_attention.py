"""Trilinear attention, both ways and within a sequence, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.tasks.layers import trilinear_attention
from elmo_tf.tasks.layers.trilinear_attention import BiAttention, SelfAttention
from tests import checks

RANDOM = np.random.default_rng(0)
DIM = 3
CONTEXT, QUERY = (RANDOM.normal(size=(2, time, DIM)).astype(np.float32) for time in (5, 4))
LENGTHS = {"context": (5, 2), "query": (2, 4)}
MASKS = {name: np.arange(time) < np.array(LENGTHS[name])[:, None] for name, time in (("context", 5), ("query", 4))}


def built(layer, shape):
    layer.build(shape)
    return checks.randomize(layer)


@pytest.fixture(scope="module")
def both_ways():
    return built(BiAttention(), (CONTEXT.shape, QUERY.shape))


@pytest.fixture(scope="module")
def within():
    return built(SelfAttention(), CONTEXT.shape)


def scores(layer, rows, columns) -> np.ndarray:
    of_rows, of_columns, of_products = (
        np.asarray(variable, np.float64)[:, 0] for variable in layer.trainable_variables[:3]
    )
    pairs = [[of_rows @ row + of_columns @ column + of_products @ (row * column) for column in columns] for row in rows]
    return np.array(pairs)


def softmax(values: np.ndarray) -> np.ndarray:
    return np.exp(values) / np.exp(values).sum(-1, keepdims=True)


def attended(layer, context, query) -> np.ndarray:
    similarities = scores(layer, context, query)
    of_query = softmax(similarities) @ query
    of_context = softmax(similarities.max(1)) @ context
    return np.concatenate([context, of_query, context * of_query, context * of_context], -1)


def self_attended(layer, vectors) -> np.ndarray:
    weights = np.exp(scores(layer, vectors, vectors)) * (1 - np.eye(len(vectors)))
    return weights @ vectors / (weights.sum(-1, keepdims=True) + np.exp(float(layer.nothing)))


# The longest sum: of 5 positions, each weight a softmax of sums of 3 * 3 products.
TOLERANCE = {"rtol": 0, "atol": checks.rounding(5 + 9 + 8, 10, 3)}


def test_attention_both_ways_is_that_of_its_definition(both_ways):
    outputs = both_ways([CONTEXT, QUERY], mask=[tf.constant(MASKS["context"]), tf.constant(MASKS["query"])])
    for row, context, query, time, query_time in zip(outputs, CONTEXT, QUERY, *LENGTHS.values(), strict=True):
        expected = attended(both_ways, context[:time], query[:query_time])
        np.testing.assert_allclose(row[:time], expected, **TOLERANCE)
    assert outputs.shape == both_ways.compute_output_shape((CONTEXT.shape, QUERY.shape))
    np.testing.assert_allclose(both_ways([CONTEXT, QUERY])[0], attended(both_ways, CONTEXT[0], QUERY[0]), **TOLERANCE)


def test_a_position_attends_to_all_others_or_to_nothing(within):
    outputs = within(CONTEXT, mask=tf.constant(MASKS["context"]))
    for row, vectors, time in zip(outputs, CONTEXT, LENGTHS["context"], strict=True):
        np.testing.assert_allclose(row[:time], self_attended(within, vectors[:time]), **TOLERANCE)
    np.testing.assert_array_equal(within(CONTEXT[:, :1]), np.zeros((2, 1, DIM)))


@pytest.mark.parametrize("size", [0.0, 200.0])
def test_large_scores_and_large_values_of_nothing_stay_finite(size):
    layer = SelfAttention()
    layer.build(CONTEXT.shape)
    assert float(layer.nothing) == -1
    checks.randomize(layer)
    layer.nothing.assign(size)
    outputs = layer(CONTEXT * 100)
    assert np.isfinite(outputs).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_blocks_of_positions_change_neither_results_nor_gradients(both_ways, within, monkeypatch, compiled):
    mask = tf.constant(MASKS["context"])

    def results() -> list[np.ndarray]:
        def call() -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                outputs = [both_ways([CONTEXT, QUERY], mask=[mask, None]), within(CONTEXT, mask=mask)]
                loss = tf.add_n([tf.reduce_sum(tf.sin(tensor)) for tensor in outputs])
            return outputs + tape.gradient(loss, [*both_ways.trainable_weights, *within.trainable_weights])

        return [np.asarray(tensor) for tensor in (tf.function(call) if compiled else call)()]

    whole = results()
    monkeypatch.setattr(trilinear_attention, "_MAX_SCORES", 2 * 5 * 2)  # two positions at once
    checks.assert_all_close(results(), whole, rtol=0, atol=checks.rounding(5 * 2 + 9 + 8, 10, 6))
