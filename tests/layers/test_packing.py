"""Packing against loops."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.layers.packing import pack

LENGTHS = [[3, 0, 5, 1, 0, 5, 2], [1], [0], [], [0, 0], [4, 4, 4], [1, 2, 3, 4], [2, 0, 9, 9, 1, 0]]


def _positions(lengths):
    """(row, time step) of every real position, time step after time step, longer rows first."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    return [(row, step) for step in range(max(lengths, default=0)) for row in order if step < lengths[row]]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_every_field_is_what_a_loop_finds(lengths):
    packing, positions = pack(tf.constant(lengths, tf.int32)), _positions(lengths)
    assert list(zip(packing.rows.numpy(), packing.steps.numpy(), strict=True)) == positions
    reaching = [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]
    assert packing.sizes.numpy().tolist() == [*reaching, 0]
    assert packing.offsets.numpy().tolist() == np.cumsum([0, *reaching]).tolist()
    assert packing.num_steps == len(reaching)
    assert packing.started == sum(length > 0 for length in lengths)
    assert [packing.places.numpy()[row] for row in packing.order.numpy()] == list(range(len(lengths)))
    mirrored = [(row, lengths[row] - 1 - step) for row, step in positions]
    assert [positions[place] for place in packing.mirrored.numpy()] == mirrored
    ends = [positions[place] for place in packing.last.numpy()]
    assert ends == [(row, lengths[row] - 1) for row in packing.order.numpy() if lengths[row]]
    ranked = [length for length in packing.lengths.numpy() if length]
    finishing = sorted(range(len(ranked)), key=lambda rank: (ranked[rank], rank))
    assert np.argsort(packing.ended.numpy()).tolist() == finishing


def test_the_graph_needs_no_shape():
    run = tf.function(lambda lengths: tuple(pack(lengths)), input_signature=[tf.TensorSpec((None,), tf.int32)])
    for lengths in LENGTHS:
        for found, expected in zip(run(lengths), pack(tf.constant(lengths, tf.int32)), strict=True):
            np.testing.assert_array_equal(found, expected)
