"""Your own classifier with `elmo_tf.ELMo`: the mean of the tokens' vectors and a dense layer.

    python examples/sentence_classifier.py savedmodels/mine/1 train.txt dev.txt

Each line of the files has a label, a tab and a tokenized sentence. `elmo-tf task sentiment` is the paper's classifier,
with early stopping and saving.
"""

import sys

import keras
import tensorflow as tf

from elmo_tf import ELMo, SequencePooling
from elmo_tf.annotated.classes import Classified, read_classes
from elmo_tf.errors import InputError


def main(model: str, train_file: str, dev_file: str, epochs: int = 5) -> float:
    """Trains a classifier and returns its accuracy."""
    train, dev = read_classes(train_file), read_classes(dev_file)
    labels = sorted({sentence.label for sentence in train})

    tokens = keras.Input((None,), dtype="string")  # padded with ""
    vectors = ELMo(model, dropout_rate=0.5)(tokens)
    pooled = SequencePooling(["mean"])(vectors)  # of real tokens: the layer passes its mask on
    hidden = keras.layers.Dense(100, "relu")(pooled)
    classifier = keras.Model(tokens, keras.layers.Dense(len(labels))(keras.layers.Dropout(0.3)(hidden)))

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    classifier.compile(keras.optimizers.Adam(0.001), loss, metrics=["accuracy"])
    data = [batches(part, labels) for part in (train, dev)]
    best = keras.callbacks.EarlyStopping("val_accuracy", patience=2, restore_best_weights=True)
    classifier.fit(data[0], validation_data=data[1], epochs=epochs, callbacks=[best], verbose=2)
    return classifier.evaluate(data[1], verbose=0, return_dict=True)["accuracy"]


def batches(sentences: list[Classified], labels: list[str]) -> tf.data.Dataset:
    """Returns batches of padded tokens and class numbers, without sentences of other classes."""
    known = [sentence for sentence in sentences if sentence.label in labels]
    words = tf.ragged.constant([sentence.tokens for sentence in known])
    numbers = tf.constant([labels.index(sentence.label) for sentence in known])
    data = tf.data.Dataset.from_tensor_slices((words, numbers)).shuffle(len(known)).ragged_batch(32)
    return data.map(lambda words, numbers: (words.to_tensor(""), numbers))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        print(f"accuracy {100 * main(*sys.argv[1:]):.1f}")
    except (InputError, OSError) as error:
        sys.exit(f"sentence_classifier.py: error: {error}")
