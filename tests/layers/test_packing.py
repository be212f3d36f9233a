"""Packing: where positions stand, against loops."""

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
def test_positions_are_those_of_the_rows_that_go_on_at_each_step(lengths):
    packing = pack(tf.constant(lengths, tf.int32))
    assert list(zip(packing.rows.numpy(), packing.steps.numpy(), strict=True)) == _positions(lengths)
    going_on = [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]
    assert packing.sizes.numpy().tolist() == [*going_on, 0]
    assert packing.offsets.numpy().tolist() == np.cumsum([0, *going_on]).tolist()
    assert packing.num_steps == len(going_on)
    assert packing.started == sum(length > 0 for length in lengths)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_mirrored_positions_are_those_of_the_rows_read_from_their_ends(lengths):
    packing, positions = pack(tf.constant(lengths, tf.int32)), _positions(lengths)
    mirrored = [(row, lengths[row] - 1 - step) for row, step in positions]
    assert [positions[place] for place in packing.mirrored.numpy()] == mirrored


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_last_positions_are_those_of_the_rows_ends(lengths):
    packing, positions = pack(tf.constant(lengths, tf.int32)), _positions(lengths)
    ends = [positions[place] for place in packing.last.numpy()]
    assert sorted(ends) == [(row, length - 1) for row, length in enumerate(lengths) if length]
    assert [row for row, _ in ends] == packing.order.numpy()[: len(ends)].tolist()


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_ranks_end_one_after_the_other(lengths):
    packing = pack(tf.constant(lengths, tf.int32))
    ranked = [length for length in packing.lengths.numpy() if length]
    ending = sorted(range(len(ranked)), key=lambda rank: (ranked[rank], rank))
    assert np.argsort(packing.ended.numpy()).tolist() == ending
    assert [packing.places.numpy()[row] for row in packing.order.numpy()] == list(range(len(lengths)))


def test_the_graph_needs_no_shape():
    run = tf.function(lambda lengths: tuple(pack(lengths)), input_signature=[tf.TensorSpec((None,), tf.int32)])
    for lengths in LENGTHS:
        for found, expected in zip(run(lengths), pack(tf.constant(lengths, tf.int32)), strict=True):
            np.testing.assert_array_equal(found, expected)
