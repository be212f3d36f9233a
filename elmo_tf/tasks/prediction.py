"""The predictions of a network, or of several together, for any number of examples."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from elmo_tf.files.progress import ProgressLine
from elmo_tf.tasks import batching
from elmo_tf.tasks.system import Example, Prediction, System


class Predictor:
    """Runs a network, which may be trained further between calls, or several networks of a system together."""

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
        """Returns the prediction for each example, which does not depend on the other examples."""
        predictions: list[Any] = [None] * len(examples)
        lengths = [batching.length(self.system, example) for example in examples]
        line, done = ProgressLine(at_once=False), 0
        for indices in batching.prediction_batches(lengths, self.system.most_predicted):
            chosen = [examples[index] for index in indices]
            inputs = {name: tf.constant(array) for name, array in self.system.inputs(chosen).items()}
            decoded = {name: tensor.numpy() for name, tensor in self._call(inputs).items()}
            for index, prediction in zip(indices, self.system.predict(decoded, chosen), strict=True):
                predictions[index] = prediction
            done += len(indices)
            if line.due():
                line.show(f"predicted {done:,} of {len(examples):,}")
        line.clear()
        return predictions

    def scores(self, examples: Sequence[Example]) -> dict[str, float]:
        """Returns the scores on labeled examples, in percent with four decimals."""
        scores = self.system.scores(examples, self.predict(examples))
        return {name: round(score, 4) for name, score in scores.items()}
