"""Examples to batches: of similar length to train on, and in any order to judge."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf.tasks.system import Example, System

_POOL = 50  # batches' worth of examples that are sorted by length together
_TRAINING_TOKENS = 16384  # positions of a training batch at most, padding included, unless one example has more
_JUDGED_TOKENS = 4096  # the same where nothing is trained


def length(system: System, example: Example) -> int:
    """Returns the length of the example's longest token sequence."""
    return max(len(tokens) for tokens in system.texts(example))


def training_batches(
    lengths: Sequence[int], batch_size: int, seed: tuple[int, int], count: int | None = None
) -> list[list[int]]:
    """Returns the places of the examples of each batch, in a random order.

    Args:
        lengths: of all examples.
        batch_size: examples of a batch at most.
        seed: of the order: a run's and the number of the epoch.
        count: how many batches; None: as many as it takes. That depends on the order where examples are long. Batches
            are then split or joined; Keras expects as many in each epoch as in the first.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    size = _POOL * batch_size
    pools = [order[start : start + size] for start in range(0, len(order), size)]
    found = []
    for pool in pools:
        found += _cut(sorted(pool.tolist(), key=lengths.__getitem__), lengths, batch_size)
    if count is not None:
        found = _as_many(found, count, lengths)
    return [found[number] for number in random.permutation(len(found))]


def judged_batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Returns the places of the examples of each batch, at most `most`, by ascending length."""
    return _cut(np.argsort(lengths, kind="stable").tolist(), lengths, most, _JUDGED_TOKENS)


def dataset(
    system: System,
    examples: Sequence[Example],
    drawn: Callable[[int], tuple[list[list[int]], np.random.Generator]],
    first: int,
) -> tf.data.Dataset:
    """Returns batches of inputs and targets, one epoch after the other without end.

    Args:
        system: makes them.
        examples: with labels.
        drawn: called with the number of each epoch; returns the places of the examples of each batch, and what decides
            what the system draws.
        first: the number of the first epoch.
    """

    def arrays() -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
        for epoch in itertools.count(first):
            batches, random = drawn(epoch)
            for places in batches:
                chosen = system.drawn([examples[place] for place in places], random)
                yield system.inputs(chosen), system.targets(chosen)

    parts = (system.inputs(examples[:1]), system.targets(examples[:1]))
    signature = tuple({name: _spec(array) for name, array in part.items()} for part in parts)
    return tf.data.Dataset.from_generator(arrays, output_signature=signature).prefetch(4)


def _as_many(batches: list[list[int]], count: int, lengths: Sequence[int]) -> list[list[int]]:
    """Returns `count` batches: the largest ones are halved, or the smallest ones are joined."""

    def positions(batch: list[int]) -> int:
        return len(batch) * max(lengths[place] for place in batch)

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


def _cut(order: list[int], lengths: Sequence[int], most: int, most_tokens: int = _TRAINING_TOKENS) -> list[list[int]]:
    """Returns an order, ascending by length, as batches."""
    found: list[list[int]] = []
    for place in order:
        if not found or len(found[-1]) == most or lengths[place] * (len(found[-1]) + 1) > most_tokens:
            found.append([])
        found[-1].append(place)
    return found


def _spec(array: Any) -> tf.TensorSpec:
    array = np.asarray(array)
    return tf.TensorSpec([None] * array.ndim, tf.string if array.dtype == object else array.dtype)
