"""LSTMP over packed rows: values against float64, and that padding costs nothing."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model import operations as products_of
from elmo_tf.model.kernels import lstmp_packed
from elmo_tf.model.kernels.lstmp_packed import pack
from tests import checks, float64
from tests.model.test_lstmp import INPUT_DIM, UNITS, new_layer

LENGTHS = [3, 0, 5, 1, 0, 5, 2]
KINDS = ("plain", "both clips", "no projection")


def _rows(layer, lengths=LENGTHS):
    """Inputs of each row, and an initial state that is not zero."""
    random = np.random.default_rng(0)
    sizes = (len(lengths), UNITS), (len(lengths), layer.config.projection_dim)
    state = tuple(random.uniform(-0.3, 0.3, size).astype(np.float32) for size in sizes)
    return [random.uniform(-1.5, 1.5, (length, INPUT_DIM)).astype(np.float32) for length in lengths], state


def _run(layer, rows, state, dtype="float32"):
    """Packs, runs and unpacks; returns the outputs of each row."""
    packing = pack(tf.constant([len(row) for row in rows], tf.int32))
    positions = list(zip(packing.rows.numpy(), packing.steps.numpy(), strict=True))
    packed = np.array([rows[row][step] for row, step in positions], np.float32).reshape(-1, INPUT_DIM)
    order = np.argsort([-len(row) for row in rows], kind="stable")[: packing.sizes[0]]
    ranked = tuple(part[order] for part in state)
    outputs, _ = lstmp_packed.run(layer, packed, ranked, packing, dtype)
    unpacked = [np.zeros((len(row), layer.config.projection_dim), np.float32) for row in rows]
    for (row, step), value in zip(positions, outputs.numpy(), strict=True):
        unpacked[row][step] = value
    return unpacked


@pytest.mark.parametrize("many", [0, 1000])
@pytest.mark.parametrize("positions", [1, 6, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_equals_the_reference_however_many_steps_are_prepared_at_once(kind, positions, many, monkeypatch):
    monkeypatch.setattr(lstmp_packed, "_POSITIONS", positions)
    monkeypatch.setattr(lstmp_packed, "_MANY_POSITIONS", many)  # fewer than these, or more
    layer = new_layer(kind)
    rows, state = _rows(layer)
    outputs = _run(layer, rows, state)
    weights = float64.weights_of_lstmp(layer)
    for number, row in enumerate(rows):
        if len(row):
            initial = tuple(part[number] for part in state)
            expected, _ = float64.lstmp(row, initial, *weights, layer.config.cell_clip, layer.config.proj_clip)
            np.testing.assert_allclose(outputs[number], expected, **checks.TOLERANCE)


@pytest.mark.parametrize("lengths", [[], [0, 0]])
def test_rows_without_a_position_are_fine(lengths):
    layer = new_layer()
    assert [len(row) for row in _run(layer, *_rows(layer, lengths))] == lengths


@pytest.mark.parametrize(("positions", "prepared"), [(6, [5, 4, 5, 2]), (1, [5, 4, 3, 2, 2]), (16, [16])])
def test_products_have_one_row_per_real_position_and_the_inputs_as_many_as_fit(monkeypatch, positions, prepared):
    layer, products = new_layer(), {}
    rows, state = _rows(layer)

    def product(values, kernel, dtype):
        products.setdefault(tuple(kernel.shape), []).append(len(values))
        return products_of.matmul(values, kernel, dtype)

    monkeypatch.setattr(lstmp_packed, "matmul", product)
    monkeypatch.setattr(lstmp_packed, "_POSITIONS", positions)
    _run(layer, rows, state)
    shapes = (INPUT_DIM, 4 * UNITS), (layer.config.projection_dim, 4 * UNITS), (UNITS, layer.config.projection_dim)
    assert {shape: sum(counts) for shape, counts in products.items()} == dict.fromkeys(shapes, sum(LENGTHS))
    assert products[shapes[0]] == prepared


@pytest.mark.parametrize("seed", range(6))
def test_random_rows_have_the_values_and_gradients_of_the_plain_layer(seed):
    random, kind = np.random.default_rng(seed), KINDS[seed % 3]
    layer, lengths = new_layer(kind), random.integers(0, 7, random.integers(1, 6)).tolist()
    lengths[0] += 1  # so that there is a position
    rows, _ = _rows(layer, lengths)
    state = tuple(tf.constant(part[:1]) for part in _rows(layer, [1])[1])  # the same for all rows
    upstream = [random.normal(size=(length, layer.config.projection_dim)).astype(np.float32) for length in lengths]

    def packed():
        packing = pack(tf.constant(lengths))
        inputs, weights = (
            tf.stack([arrays[row][step] for row, step in zip(packing.rows, packing.steps, strict=True)])
            for arrays in (rows, upstream)
        )
        return tf.reduce_sum(lstmp_packed.run(layer, inputs, state, packing, "float32")[0] * weights)

    def one_by_one():
        pairs = zip(rows, upstream, strict=True)
        return sum(tf.reduce_sum(layer(row[None], state)[0][0] * weights) for row, weights in pairs if len(row))

    np.testing.assert_allclose(packed(), one_by_one(), rtol=0, atol=sum(lengths) * checks.TOLERANCE["atol"])
    for gradient, other in zip(*(checks.gradients(layer, loss) for loss in (packed, one_by_one)), strict=True):
        np.testing.assert_allclose(gradient, other, **checks.gradient_tolerance(other))


@checks.bfloat16_products
def test_bfloat16_products_stay_near():
    layer = new_layer()
    rows, state = _rows(layer)
    exact, close = (np.concatenate(_run(layer, rows, state, dtype)) for dtype in ("float32", "bfloat16"))
    assert 0 < np.abs(exact - close).max() < checks.BFLOAT16
