"""Batches of examples of similar length: for training, in random order; for prediction, by length."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.files import progress
from elmo_tf.tasks.system import Example, Prediction, System
from elmo_tf.text.batches import batches as text_batches

_POOL = 50  # size of a length bucket, in batches
_TRAINING_TOKENS = 16384  # maximum positions of a training batch, padding included, unless one example has more
_PREDICTION_TOKENS = 4096  # maximum positions of a prediction batch


def length(system: System, example: Example) -> int:
    """Returns the length of the example's longest token sequence."""
    return max(map(len, system.texts(example)))


def training_batches(
    lengths: Sequence[int], batch_size: int, seed: tuple[int, int], count: int | None = None
) -> list[list[int]]:
    """Returns the indices of the examples of each batch, in an order that depends on the seed.

    A batch of long examples has fewer than `batch_size`, so the number of batches also depends on the order. With
    `count`, batches are split or joined until there are `count`: Keras expects the same number in each epoch.
    """
    random = np.random.default_rng(seed)
    order, token_counts = random.permutation(len(lengths)), np.array(lengths)
    size = _POOL * batch_size
    batches = []
    for start in range(0, len(order), size):
        pool = order[start : start + size]
        by_length = text_batches(token_counts[pool].tolist(), _TRAINING_TOKENS, batch_size)
        batches += [pool[batch].tolist() for batch in by_length]
    if count is not None:
        batches = _as_many(batches, count, lengths)
    return [batches[number] for number in random.permutation(len(batches))]


def training_data(system: System, examples: Sequence[Example], first: int) -> tuple[tf.data.Dataset, int]:
    """Returns an endless dataset of batches from epoch `first` on, inputs and targets, and the batches per epoch."""
    fit, lengths = system.recipe.fit, [length(system, example) for example in examples]
    count = len(training_batches(lengths, fit.batch_size, (fit.seed, 0)))

    def arrays() -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
        for epoch in itertools.count(first):
            random = np.random.default_rng((fit.seed, epoch, 1))
            for batch in training_batches(lengths, fit.batch_size, (fit.seed, epoch), count):
                chosen = system.resample([examples[index] for index in batch], random)
                yield system.inputs(chosen), system.targets(chosen)

    def spec(array: np.ndarray) -> tf.TensorSpec:
        return tf.TensorSpec([None] * array.ndim, tf.string if array.dtype == object else array.dtype)

    signature = tf.nest.map_structure(spec, (system.inputs(examples[:1]), system.targets(examples[:1])))
    return tf.data.Dataset.from_generator(arrays, output_signature=signature).prefetch(4), count


class Predictor:
    """Predicts with one network or an ensemble; weights are read at each call."""

    def __init__(self, system: System, *networks: keras.Model):
        self.system = system
        self.networks = networks
        specs = {name: tf.TensorSpec(tensor.shape, tensor.dtype) for name, tensor in networks[0].input.items()}
        self._call = tf.function(self._decoded, input_signature=[specs], autograph=False)

    def _decoded(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        outputs = [network(inputs, training=False) for network in self.networks]
        if len(outputs) == 1:
            return self.system.decode(self.networks[0], outputs[0])
        return self.system.decode_together(self.networks, outputs)

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Returns the prediction for each example, which does not depend on the other examples.

        It is `System.empty_prediction` for an example without tokens.
        """
        predictions: list[Any] = [self.system.empty_prediction() for _ in examples]
        readable = [index for index, example in enumerate(examples) if self.system.has_tokens(example)]
        lengths = [length(self.system, examples[index]) for index in readable]
        report, done = progress.reporter("predicted {:,} of {:,}"), 0
        for batch in text_batches(lengths, _PREDICTION_TOKENS, self.system.prediction_batch_size):
            indices = [readable[number] for number in batch]
            chosen = [examples[index] for index in indices]
            inputs = {name: tf.constant(array) for name, array in self.system.inputs(chosen).items()}
            decoded = {name: tensor.numpy() for name, tensor in self._call(inputs).items()}
            for index, prediction in zip(indices, self.system.predict(decoded, chosen), strict=True):
                predictions[index] = prediction
            done += len(indices)
            report(done, len(readable))
        return predictions

    def scores(self, examples: Sequence[Example]) -> dict[str, float]:
        """Returns the scores on labeled examples, in percent with four decimals."""
        return rounded(self.system.scores(examples, self.predict(examples)))


def rounded(scores: dict[str, float]) -> dict[str, float]:
    """Returns scores with four decimals."""
    return {name: round(score, 4) for name, score in scores.items()}


def _as_many(batches: list[list[int]], count: int, lengths: Sequence[int]) -> list[list[int]]:
    """Returns `count` batches: halves the largest, or joins the two smallest, as often as needed."""

    def positions(batch: list[int]) -> int:
        return len(batch) * max(lengths[index] for index in batch)

    batches = list(batches)
    while len(batches) < count:
        largest = max((batch for batch in batches if len(batch) > 1), key=positions)
        batches.remove(largest)
        half = len(largest) // 2
        batches += [largest[:half], largest[half:]]
    while len(batches) > count:
        smallest, second = sorted(batches, key=positions)[:2]
        batches = [batch for batch in batches if batch not in (smallest, second)] + [smallest + second]
    return batches
