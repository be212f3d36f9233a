"""Fine-tunes the biLM in your own model, with a lower learning rate than for the new layers.

    python examples/two_learning_rates.py --model savedmodels/mine --data reviews.tsv

--data has a label, a tab and a sentence on each line. The new layers start from random weights, the biLM from trained
ones: one rate for both is too small for the former or too large for the latter. `TwoRates` is a `keras.Model` with two
optimizers.
"""

import argparse
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

import elmo_tf
from elmo_tf.errors import InputError


@keras.saving.register_keras_serializable("examples")
class TwoRates(keras.Model):
    """A functional model with an ELMo layer of `trainable_bilm=True` and a separate optimizer for its biLM."""

    def compile(self, optimizer: keras.optimizers.Optimizer, bilm_optimizer: keras.optimizers.Optimizer, **settings):
        super().compile(optimizer=optimizer, **settings)
        self.bilm_optimizer = bilm_optimizer
        (elmo,) = (layer for layer in self.layers if isinstance(layer, elmo_tf.ELMo))
        self._slow = elmo.bilm.trainable_variables
        slow = {id(variable) for variable in self._slow}
        self._fast = [variable for variable in self.trainable_variables if id(variable) not in slow]
        # Slots for each optimizer's own variables only.
        self.optimizer.build(self._fast)
        self.bilm_optimizer.build(self._slow)

    def train_step(self, data):
        inputs, labels, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            outputs = self(inputs, training=True)
            loss = self.compute_loss(inputs, labels, outputs, sample_weight)
        fast, slow = tape.gradient(loss, [self._fast, self._slow])
        self.optimizer.apply(fast, self._fast)
        self.bilm_optimizer.apply(slow, self._slow)
        next(metric for metric in self.metrics if metric.name == "loss").update_state(loss)
        return self.compute_metrics(inputs, labels, outputs, sample_weight)


def build(elmo: str, num_classes: int, rate: float, bilm_rate: float) -> TwoRates:
    """Returns a compiled sentence classifier: the mean of the vectors and one dense layer."""
    sentences = keras.Input((), dtype="string")
    vectors = elmo_tf.ELMo(elmo, trainable_bilm=True, dropout_rate=0.3)(sentences)
    pooled = elmo_tf.SequencePooling(["mean"])(vectors)
    model = TwoRates(sentences, keras.layers.Dense(num_classes)(pooled))
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        # Clipping keeps a large first gradient from destroying the biLM's weights.
        bilm_optimizer=keras.optimizers.Adam(bilm_rate, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def read(path: pathlib.Path) -> list[tuple[str, str]]:
    """Returns the label and the sentence of each line that has both."""
    # Not `splitlines`: it also splits at characters within a line, such as U+0085.
    lines = path.read_text("utf-8").split("\n")
    return [(label, sentence) for label, tab, sentence in (line.partition("\t") for line in lines) if tab]


def main() -> None:
    """Trains on nine lines of ten and prints the accuracy on the tenth."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a SavedModel, a workdir, or a published model's name")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="a label, a tab and a sentence on each line")
    parser.add_argument("--rate", type=float, default=1e-3, help="of the new layers and the mix (0.001)")
    parser.add_argument("--bilm-rate", type=float, default=5e-5, help="of the biLM (0.00005)")
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    rows = read(arguments.data)
    if len(rows) < 10:
        raise InputError(str(arguments.data), "at least 10 lines with a label, a tab and a sentence", len(rows))
    names = sorted({label for label, _ in rows})
    labels = np.array([names.index(label) for label, _ in rows])
    sentences = np.array([sentence for _, sentence in rows], object)
    test = np.random.default_rng(0).permutation(len(rows)) % 10 == 9
    model = build(arguments.model, len(names), arguments.rate, arguments.bilm_rate)
    model.fit(tf.constant(sentences[~test]), labels[~test], epochs=arguments.epochs, verbose=2)
    _, accuracy = model.evaluate(tf.constant(sentences[test]), labels[test], verbose=0)
    print(f"accuracy {accuracy:.4f} of {test.sum()} sentences")


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"two_learning_rates.py: error: {error}")
