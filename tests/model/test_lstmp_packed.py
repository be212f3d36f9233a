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
    sizes = (len(lengths), UNITS), (len(lengths), layer.projection_dim)
    state = tuple(random.uniform(-0.3, 0.3, size).astype(np.float32) for size in sizes)
    return [random.uniform(-1.5, 1.5, (length, INPUT_DIM)).astype(np.float32) for length in lengths], state


def _run(layer, rows, state):
    """Packs, runs and unpacks; returns the outputs of each row."""
    packing = pack(tf.constant([len(row) for row in rows], tf.int32))
    positions = list(zip(packing.rows.numpy(), packing.steps.numpy(), strict=True))
    packed = np.array([rows[row][step] for row, step in positions], np.float32).reshape(-1, INPUT_DIM)
    order = np.argsort([-len(row) for row in rows], kind="stable")[: packing.sizes[0]]
    ranked = tuple(part[order] for part in state)
    clips = lstmp_packed.Clips(layer.cell_clip, layer.proj_clip)
    outputs, _ = lstmp_packed.run(layer.kernels(), clips, packed, packing, ranked)
    unpacked = [np.zeros((len(row), layer.projection_dim), np.float32) for row in rows]
    for (row, step), value in zip(positions, outputs.numpy(), strict=True):
        unpacked[row][step] = value
    return unpacked


@pytest.mark.parametrize("positions", [1, 6, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_equals_the_reference_however_many_steps_are_prepared_at_once(kind, positions, monkeypatch):
    monkeypatch.setattr(lstmp_packed, "_POSITIONS", positions)
    layer = new_layer(kind)
    rows, state = _rows(layer)
    outputs = _run(layer, rows, state)
    weights = float64.weights_of_lstmp(layer)
    for number, row in enumerate(rows):
        if len(row):
            initial = tuple(part[number] for part in state)
            expected, _ = float64.lstmp(row, initial, *weights, layer.cell_clip, layer.proj_clip)
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
        products.setdefault(kernel.shape, []).append(len(values))
        return products_of.matmul(values, kernel, dtype)

    monkeypatch.setattr(lstmp_packed, "matmul", product)
    monkeypatch.setattr(lstmp_packed, "_POSITIONS", positions)
    _run(layer, rows, state)
    kernels = layer.kernels()
    assert {shape: sum(counts) for shape, counts in products.items()} == {part.shape: sum(LENGTHS) for part in kernels}
    assert products[kernels.from_input.shape] == prepared


def test_bfloat16_kernels_keep_the_bias():
    layer = new_layer()
    layer.bias.assign(np.linspace(-3, 3, 4 * UNITS))
    exact, rounded = (layer.kernels(dtype).from_input[INPUT_DIM:] for dtype in ("float32", "bfloat16"))
    assert (len(exact), len(rounded)) == (1, 2)
    assert rounded.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.reduce_sum(tf.cast(rounded, tf.float32), 0), exact[0], atol=4 * 2**-17)
    assert np.abs(tf.cast(rounded[0], tf.float32) - exact[0]).max() > 1e-3  # one row would not do


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_weights_can_be_had_back(kind, dtype):
    layer = new_layer(kind)
    kernels = [None if kernel is None else tf.cast(kernel, tf.float32) for kernel in layer.kernels(dtype)]
    tolerance = checks.FEW if dtype == "float32" else {"rtol": 2**-7, "atol": 2**-17}
    weights = lstmp_packed.unpacked(lstmp_packed.Kernels(*kernels), INPUT_DIM)
    checks.assert_all_close(weights, layer.weights, **tolerance)
