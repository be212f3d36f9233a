"""Batches of examples."""

import numpy as np

from elmo_tf.tasks import batching


def indices(batches: list[list[int]]) -> list[int]:
    return sorted(index for batch in batches for index in batch)


def test_every_example_is_trained_on_once_with_others_of_its_length():
    lengths = np.random.default_rng(0).integers(1, 40, 1000).tolist()
    batches = batching.training_batches(lengths, 8, (0, 0))
    assert indices(batches) == list(range(1000))
    assert all(len(batch) <= 8 for batch in batches)
    padded = sum(max(lengths[index] for index in batch) * len(batch) for batch in batches)
    assert padded < 1.1 * sum(lengths)
    # Short examples do not come first.
    firsts = [lengths[batch[0]] for batch in batches]
    assert abs(np.mean(firsts[:60]) - np.mean(firsts[60:])) < 5


def test_seed_and_epoch_decide_the_order():
    orders = [batching.training_batches([1] * 100, 8, seed) for seed in ((0, 0), (0, 0), (0, 1), (1, 0))]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2] != orders[3] != orders[0]


def test_a_batch_has_few_long_examples():
    lengths = [3000, 2, 3000, 3000, 3000, 3000, 3000, 20_000]
    sizes = [len(batch) for batch in batching.training_batches(lengths, 8, (0, 0))]
    assert sorted(sizes) == [1, 2, 5]


def test_each_epoch_has_the_requested_number_of_batches():
    lengths = np.random.default_rng(0).choice([5, 40, 3000, 9000], 600).tolist()
    epochs = [batching.training_batches(lengths, 8, (0, epoch)) for epoch in range(9)]
    counts = [len(batches) for batches in epochs]
    assert len(set(counts)) > 1  # otherwise there is nothing to equalize
    for epoch, count in ((0, min(counts) - 1), (1, max(counts)), (2, 600)):
        batches = batching.training_batches(lengths, 8, (0, epoch), count)
        assert len(batches) == count
        assert indices(batches) == list(range(600))
    assert batching.training_batches(lengths, 8, (0, 0), counts[0]) == epochs[0]
