"""Batches of examples of similar length: in random order for training, by length for prediction."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from elmo_tf.tasks.system import Example, System

_POOL = 50  # batches' worth of examples that are sorted by length together
_TRAINING_TOKENS = 16384  # most positions of a training batch, padding included, unless one example has more
_PREDICTION_TOKENS = 4096  # the same for prediction


def length(system: System, example: Example) -> int:
    """Returns the length of the example's longest token sequence."""
    return max(map(len, system.texts(example)))


def training_batches(
    lengths: Sequence[int], batch_size: int, seed: tuple[int, int], count: int | None = None
) -> list[list[int]]:
    """Returns the indices of the examples of each batch, in a random order.

    Args:
        lengths: of all examples.
        batch_size: most examples of a batch.
        seed: of the order: the run's seed and the number of the epoch.
        count: how many batches, for which batches are split or joined, since Keras expects as many in each epoch as in
            the first; None: as many as it takes, which depends on the order where examples are long.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    size = _POOL * batch_size
    found = []
    for start in range(0, len(order), size):
        pool = sorted(order[start : start + size].tolist(), key=lengths.__getitem__)
        found += _cut(pool, lengths, batch_size, _TRAINING_TOKENS)
    if count is not None:
        found = _as_many(found, count, lengths)
    return [found[number] for number in random.permutation(len(found))]


def prediction_batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Returns the indices of the examples of each batch, at most `most`, by ascending length."""
    return _cut(np.argsort(lengths, kind="stable").tolist(), lengths, most, _PREDICTION_TOKENS)


def dataset(
    system: System,
    examples: Sequence[Example],
    epochs: Callable[[int], tuple[list[list[int]], np.random.Generator]],
    first: int,
) -> tf.data.Dataset:
    """Returns batches of inputs and targets, one epoch after the other without end.

    Args:
        system: makes them.
        examples: with labels.
        epochs: called with the number of each epoch; returns the indices of the examples of each batch, and the random
            numbers for `system.drawn`.
        first: the number of the first epoch.
    """

    def arrays() -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
        for epoch in itertools.count(first):
            batches, random = epochs(epoch)
            for batch in batches:
                chosen = system.drawn([examples[index] for index in batch], random)
                yield system.inputs(chosen), system.targets(chosen)

    def spec(array: np.ndarray) -> tf.TensorSpec:
        return tf.TensorSpec([None] * array.ndim, tf.string if array.dtype == object else array.dtype)

    signature = tf.nest.map_structure(spec, (system.inputs(examples[:1]), system.targets(examples[:1])))
    return tf.data.Dataset.from_generator(arrays, output_signature=signature).prefetch(4)


def _as_many(batches: list[list[int]], count: int, lengths: Sequence[int]) -> list[list[int]]:
    """Returns `count` batches: the largest are halved, or the smallest joined."""

    def positions(batch: list[int]) -> int:
        return len(batch) * max(lengths[index] for index in batch)

    batches = list(batches)
    while len(batches) < count:
        largest = max((batch for batch in batches if len(batch) > 1), key=positions)
        batches.remove(largest)
        half = len(largest) // 2
        batches += [largest[:half], largest[half:]]
    while len(batches) > count:
        one, other = sorted(batches, key=positions)[:2]
        batches = [batch for batch in batches if batch not in (one, other)] + [one + other]
    return batches


def _cut(order: list[int], lengths: Sequence[int], most: int, most_tokens: int) -> list[list[int]]:
    """Returns batches of examples in an order by ascending length."""
    found: list[list[int]] = []
    for index in order:
        if not found or len(found[-1]) == most or lengths[index] * (len(found[-1]) + 1) > most_tokens:
            found.append([])
        found[-1].append(index)
    return found
