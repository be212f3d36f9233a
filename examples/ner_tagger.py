"""Named entities by a BiLSTM-CRF, without and with ELMo, scored by seqeval.

    python examples/ner_tagger.py --elmo savedmodels/mine/1 --train train.conll --dev dev.conll --test test.conll

The files have a token and a BIO tag a line, and an empty line between sentences. Word vectors are learned, from random
ones or from --glove. One model is trained for each way to --mix ELMo's layers. The weights of the epoch with the best
F1 on --dev are scored on --test. --save DIR keeps the models with ELMo: `elmo-tf weights-plot --model
DIR/learned_0.keras --output weights.png` draws the weights of their mixes. To load one with Keras, import
`elmo_tf.ELMo` and `elmo_tf.layers.crf.CRF` first.
"""

import argparse
import json
import pathlib
import statistics
import sys

import keras
import numpy as np
import seqeval.metrics
import tensorflow as tf

import elmo_tf
from elmo_tf.annotated.columns import Tagged, read_columns
from elmo_tf.annotated.word_vectors import read_word_vectors
from elmo_tf.errors import InputError, renamed
from elmo_tf.layers.crf import CRF

BATCH_SIZE = 16
# Of word vectors without --glove.
WORD_DIM = 50
# Word ids.
PADDING, UNKNOWN = 0, 1
MIXES = ("learned", "average", "top")


def main() -> None:
    """Trains and scores the tagger without and with ELMo, once for each seed."""
    arguments = parse_arguments()
    train, dev, test = (read(name, getattr(arguments, name)) for name in ("train", "dev", "test"))
    # The same sentences for every seed and model.
    order = np.random.default_rng(0).permutation(len(train))
    train = [train[number] for number in order[: max(1, round(arguments.fraction * len(train)))]]
    print(f"{len(train)} sentences to train on, {len(dev)} to choose the epoch by, {len(test)} to test on", flush=True)
    # A wrong --elmo is an error before anything is trained.
    with renamed(source="--elmo"):
        elmo_tf.ELMo(arguments.elmo)
    ways = {"without ELMo": None} | {f"ELMo {mix}": mix for mix in arguments.mix}
    scores = {way: [] for way in ways}
    for seed in range(arguments.seeds):
        for way, mix in ways.items():
            keras.utils.set_random_seed(seed)
            tagger = build(train, mix, arguments)
            # The data shuffles by itself.
            tagger.fit(
                tagger.batches(train), epochs=arguments.epochs, callbacks=[KeepBest(dev)], shuffle=False, verbose=0
            )
            scores[way].append(round(tagger.f1(test), 4))
            print(f"seed {seed}, {way}: F1 {scores[way][-1]:.4f}", flush=True)
            if mix is not None and arguments.save is not None:
                arguments.save.mkdir(parents=True, exist_ok=True)
                keras.Model(tagger.inputs, tagger.outputs).save(arguments.save / f"{mix}_{seed}.keras")
    means = {way: round(statistics.mean(values), 4) for way, values in scores.items()}
    print()
    for way, mean in means.items():
        print(f"mean F1, {way:14}{mean:.4f}")
    print(json.dumps({"task": "ner", "train_sentences": len(train), "f1": scores, "mean_f1": means}))


def parse_arguments() -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--elmo", required=True, help="a SavedModel's version folder, or a workdir")
    for name in ("--train", "--dev", "--test"):
        parser.add_argument(name, required=True, help="a token and a BIO tag a line, empty lines between sentences")
    parser.add_argument("--glove", help="a text file of vectors of lower-case words to start from")
    parser.add_argument("--output-mix", action="store_true", help="ELMo at the BiLSTM's output as well as at its input")
    parser.add_argument("--mix", nargs="+", choices=MIXES, default=["learned"], help="of ELMo's layers (learned)")
    parser.add_argument("--fraction", type=float, default=1.0, help="the fraction of the training sentences to use (1)")
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training sentences (15)")
    parser.add_argument("--units", type=int, default=100, help="units of the LSTM in each direction (100)")
    parser.add_argument("--seeds", type=int, default=1, help="number of runs, with seeds 0, 1, .. (1)")
    parser.add_argument("--save", type=pathlib.Path, help="a folder for the models with ELMo")
    arguments = parser.parse_args()
    if not 0 < arguments.fraction <= 1 or min(arguments.epochs, arguments.units, arguments.seeds) < 1:
        parser.error("expected 0 < --fraction <= 1 and --epochs, --units, --seeds of at least 1")
    return arguments


def read(option: str, path: str) -> list[Tagged]:
    """Returns the sentences of one of the files."""
    with renamed(path=f"--{option}"):
        return read_columns(path)


def build(train: list[Tagged], mix: str | None, arguments: argparse.Namespace) -> "Tagger":
    """Returns an untrained tagger."""
    if arguments.glove is None:
        words = sorted({token.lower() for sentence in train for token in sentence.tokens})
        table = np.random.default_rng(0).uniform(-0.05, 0.05, (len(words), WORD_DIM))
    else:
        with renamed(path="--glove"):
            words, table = read_word_vectors(arguments.glove)
    word_ids = {word: number for number, word in enumerate(words, UNKNOWN + 1)}
    table = np.concatenate([np.zeros((UNKNOWN + 1, table.shape[1])), table])

    tokens, ids = keras.Input((None,), dtype="string"), keras.Input((None,), dtype="int32")
    # The table is a weight. As an initializer it would be text in the saved configuration.
    vectors = [keras.layers.Embedding(*table.shape, "zeros", mask_zero=True, weights=table)(ids)]
    above = []
    if mix is not None:
        known = sorted({token for sentence in train for token in sentence.tokens})
        layer = elmo_tf.ELMo(arguments.elmo, 1 + arguments.output_mix, mix, dropout_rate=0.5, vocabulary=known)
        below, *above = layer(tokens) if arguments.output_mix else [layer(tokens)]
        vectors.append(below)
    lstm = keras.layers.LSTM(arguments.units, return_sequences=True)
    hidden = keras.layers.Bidirectional(lstm)(keras.layers.Dropout(0.3)(joined(vectors)))
    tags = sorted({label for sentence in train for label in sentence.labels})
    scores = keras.layers.Dense(len(tags))(keras.layers.Dropout(0.3)(joined([hidden, *above])))
    crf = CRF(len(tags))
    tagger = Tagger([tokens, ids], crf(scores), crf, tags, word_ids)
    tagger.compile(keras.optimizers.Adam(2e-3))
    return tagger


def joined(vectors: list[keras.KerasTensor]) -> keras.KerasTensor:
    """Returns vectors side by side."""
    return keras.layers.Concatenate()(vectors) if len(vectors) > 1 else vectors[0]


class Tagger(keras.Model):
    """A functional model of tag scores, trained by the likelihood of whole tag sequences."""

    def __init__(self, inputs, outputs, crf: CRF, tags: list[str], word_ids: dict[str, int]):
        super().__init__(inputs, outputs)
        self.crf = crf
        self.tags = tags
        self.word_ids = word_ids

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return -tf.reduce_mean(self.crf.log_likelihood(y_pred, y)) + sum(self.losses)

    def batches(self, sentences: list[Tagged], shuffle: bool = True) -> tf.data.Dataset:
        """Returns batches of tokens and word ids, and tag numbers, -1 at padding and for unknown tags."""
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        columns = (
            [sentence.tokens for sentence in sentences],
            [[self.word_ids.get(token.lower(), UNKNOWN) for token in sentence.tokens] for sentence in sentences],
            [[numbers.get(label, -1) for label in sentence.labels] for sentence in sentences],
        )
        data = tf.data.Dataset.from_tensor_slices(tuple(tf.ragged.constant(column) for column in columns))
        data = data.shuffle(len(sentences)) if shuffle else data
        data = data.ragged_batch(BATCH_SIZE)
        return data.map(lambda tokens, ids, tags: ((tokens.to_tensor(), ids.to_tensor()), tags.to_tensor(-1))).prefetch(
            2
        )

    def f1(self, sentences: list[Tagged]) -> float:
        """Returns seqeval's micro F1 of entities."""
        found = []
        for inputs, _ in self.batches(sentences, shuffle=False):
            paths = self.crf.decode(self.predict_on_batch(inputs), inputs[1].numpy() != PADDING)
            found += [[self.tags[number] for number in path] for path in paths]
        return float(seqeval.metrics.f1_score([sentence.labels for sentence in sentences], found))


class KeepBest(keras.callbacks.Callback):
    """Restores, at the end of the training, the weights of the epoch that was best on the dev set."""

    def __init__(self, dev: list[Tagged]):
        super().__init__()
        self.dev = dev
        self.best, self.weights = -1.0, None

    def on_epoch_end(self, epoch, logs=None):
        f1 = self.model.f1(self.dev)
        print(f"  epoch {epoch + 1}: loss {logs['loss']:.3f}, dev F1 {f1:.4f}", flush=True)
        if f1 > self.best:
            self.best, self.weights = f1, self.model.get_weights()

    def on_train_end(self, logs=None):
        self.model.set_weights(self.weights)


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"ner_tagger.py: error: {error}")
