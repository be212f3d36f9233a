"""Your own tagger with `elmo_tf.ELMo`, Keras layers and a CRF.

    python examples/ner_tagger.py savedmodels/mine/1 train.conll dev.conll

The files have a token and a BIO tag on each line, and an empty line between sentences. `elmo-tf task ner` is the
paper's tagger, with seeds, early stopping and saving.
"""

import sys

import keras
import seqeval.metrics
import tensorflow as tf

from elmo_tf import CRF, ELMo
from elmo_tf.annotated.columns import read_columns
from elmo_tf.errors import InputError


def main(model: str, train_file: str, dev_file: str, epochs: int = 5) -> float:
    """Trains a tagger and returns its F1."""
    train, dev = read_columns(train_file), read_columns(dev_file)
    tags = sorted({tag for sentence in train for tag in sentence.labels})

    tokens = keras.Input((None,), dtype="string")  # padded with ""
    vectors = ELMo(model, penalty=0.1, dropout_rate=0.5)(tokens)
    hidden = keras.layers.Bidirectional(keras.layers.LSTM(100, return_sequences=True))(vectors)
    scores = keras.layers.Dense(len(tags))(hidden)
    crf = CRF(tags)
    tagger = keras.Model(tokens, crf(scores))
    best = keras.Model(tokens, crf(scores, decode=True))

    tagger.compile(keras.optimizers.Adam(0.002), loss=crf.loss, metrics=[crf.accuracy])
    numbers = tf.ragged.constant([[tags.index(tag) for tag in sentence.labels] for sentence in train])
    words = tf.ragged.constant([sentence.tokens for sentence in train])
    data = tf.data.Dataset.from_tensor_slices((words, numbers)).shuffle(len(train)).ragged_batch(32)
    tagger.fit(data.map(lambda words, numbers: (words.to_tensor(""), numbers.to_tensor(-1))), epochs=epochs, verbose=2)

    inputs = tf.ragged.constant([sentence.tokens for sentence in dev]).to_tensor("")
    predicted = [[tags[number] for number in row if number >= 0] for row in best.predict(inputs, verbose=0)]
    return float(seqeval.metrics.f1_score([sentence.labels for sentence in dev], predicted))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        print(f"F1 {100 * main(*sys.argv[1:]):.1f}")
    except (InputError, OSError) as error:
        sys.exit(f"ner_tagger.py: error: {error}")
