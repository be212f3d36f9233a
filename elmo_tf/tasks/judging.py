"""The answers of a network, trained or not, to examples."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.files.progress import ProgressLine
from elmo_tf.tasks import batching
from elmo_tf.tasks.system import Answer, Example, System


class Judge:
    """Asks a network, which may be trained meanwhile."""

    def __init__(self, system: System, network: keras.Model):
        self.system = system
        self.network = network
        specs = {name: tf.TensorSpec(one.shape, one.dtype) for name, one in network.input.items()}
        self._call = tf.function(lambda inputs: network(inputs, training=False), input_signature=[specs])

    def answers(self, examples: Sequence[Example]) -> list[Answer]:
        """Returns the answer to each example. It depends on the example alone."""
        found: list[Any] = [None] * len(examples)
        lengths = [batching.length(self.system, example) for example in examples]
        line, done = ProgressLine(at_once=False), 0
        for places in batching.judged_batches(lengths, self.system.judged_together):
            chosen = [examples[place] for place in places]
            inputs = {name: tf.constant(array) for name, array in self.system.inputs(chosen).items()}
            outputs = tf.nest.map_structure(lambda tensor: tensor.numpy(), self._call(inputs))
            for place, answer in zip(places, self.system.answers(self.network, outputs, chosen), strict=True):
                found[place] = answer
            done += len(places)
            if line.due():
                line.show(f"judged {done:,} of {len(examples):,}")
        line.clear()
        return found

    def scores(self, examples: Sequence[Example]) -> dict[str, float]:
        """Returns the scores of the answers to labelled examples, in percent with four decimals."""
        scores = self.system.scores(examples, self.answers(examples))
        return {name: round(score, 4) for name, score in scores.items()}
