"""Sentence classification by a BiLSTM with mean-pooling, without and with ELMo, scored by scikit-learn.

    python examples/sentence_classifier.py --elmo savedmodels/mine/1 --class good=good.txt --class bad=bad.txt

Each class has a file of tokenised sentences, one a line. Of every ten sentences, eight train, the ninth chooses the
epoch and the tenth is tested on. Word vectors are learned, from random ones or from --glove. One model is trained for
each way to --mix ELMo's layers. --save DIR keeps the models with ELMo.
"""

import argparse
import json
import pathlib
import statistics
import sys

import keras
import numpy as np
import sklearn.metrics
import tensorflow as tf

import elmo_tf
from elmo_tf.annotated.word_vectors import read_word_vectors
from elmo_tf.errors import InputError, renamed

BATCH_SIZE = 32
# Of word vectors without --glove.
WORD_DIM = 50
# Word ids.
PADDING, UNKNOWN = 0, 1
MIXES = ("learned", "average", "top")

# Tokens, and the number of the class.
Sentences = list[tuple[list[str], int]]


def main() -> None:
    """Trains and scores the classifier without and with ELMo, once for each seed."""
    arguments = parse_arguments()
    train, dev, test = read(arguments.classes)
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
            model, word_ids = build(train, mix, arguments)
            best = keras.callbacks.EarlyStopping("val_accuracy", patience=arguments.epochs, restore_best_weights=True)
            data = [batches(part, word_ids, part is train) for part in (train, dev, test)]
            # The data shuffles by itself.
            run = {"epochs": arguments.epochs, "callbacks": [best], "shuffle": False, "verbose": 0}
            log = model.fit(data[0], validation_data=data[1], **run)
            print("  dev accuracy by epoch:", *(f"{value:.4f}" for value in log.history["val_accuracy"]), flush=True)
            found = np.concatenate([model.predict_on_batch(inputs).argmax(-1) for inputs, _ in data[2]])
            scores[way].append(round(float(sklearn.metrics.accuracy_score([label for _, label in test], found)), 4))
            print(f"seed {seed}, {way}: accuracy {scores[way][-1]:.4f}", flush=True)
            if mix is not None and arguments.save is not None:
                arguments.save.mkdir(parents=True, exist_ok=True)
                model.save(arguments.save / f"{mix}_{seed}.keras")
    means = {way: round(statistics.mean(values), 4) for way, values in scores.items()}
    print()
    for way, mean in means.items():
        print(f"mean accuracy, {way:14}{mean:.4f}")
    print(json.dumps({"task": "classes", "train_sentences": len(train), "accuracy": scores, "mean_accuracy": means}))


def parse_arguments() -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--elmo", required=True, help="a SavedModel's version folder, or a workdir")
    parser.add_argument(
        "--class",
        dest="classes",
        action="append",
        required=True,
        metavar="NAME=FILE",
        help="its sentences, one a line; once for each class",
    )
    parser.add_argument("--glove", help="a text file of vectors of lower-case words to start from")
    parser.add_argument("--mix", nargs="+", choices=MIXES, default=["learned"], help="of ELMo's layers (learned)")
    parser.add_argument("--fraction", type=float, default=1.0, help="the fraction of the training sentences to use (1)")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the training sentences (5)")
    parser.add_argument("--units", type=int, default=100, help="units of the LSTM in each direction (100)")
    parser.add_argument("--seeds", type=int, default=1, help="number of runs, with seeds 0, 1, .. (1)")
    parser.add_argument("--save", type=pathlib.Path, help="a folder for the models with ELMo")
    arguments = parser.parse_args()
    if not 0 < arguments.fraction <= 1 or min(arguments.epochs, arguments.units, arguments.seeds) < 1:
        parser.error("expected 0 < --fraction <= 1 and --epochs, --units, --seeds of at least 1")
    if len(arguments.classes) < 2 or not all("=" in one for one in arguments.classes):
        parser.error(f"--class: expected NAME=FILE at least twice, found {' '.join(arguments.classes)}")
    return arguments


def read(classes: list[str]) -> tuple[Sentences, Sentences, Sentences]:
    """Returns the sentences to train on, to choose the epoch by and to test on."""
    parts = ([], [], [])
    for label, one in enumerate(classes):
        path = pathlib.Path(one.partition("=")[2])
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise InputError("--class", "UTF-8", f"{error.reason} in {path}") from None
        sentences = [line.split() for line in text.split("\n") if line.strip()]
        if len(sentences) < 10:
            raise InputError("--class", "at least 10 sentences", f"{len(sentences)} in {path}")
        for number, tokens in enumerate(sentences):
            parts[{8: 1, 9: 2}.get(number % 10, 0)].append((tokens, label))
    return parts


def build(train: Sentences, mix: str | None, arguments: argparse.Namespace) -> tuple[keras.Model, dict[str, int]]:
    """Returns an untrained classifier and its word ids."""
    if arguments.glove is None:
        words = sorted({token.lower() for tokens, _ in train for token in tokens})
        table = np.random.default_rng(0).uniform(-0.05, 0.05, (len(words), WORD_DIM))
    else:
        with renamed(path="--glove"):
            words, table = read_word_vectors(arguments.glove)
    table = np.concatenate([np.zeros((UNKNOWN + 1, table.shape[1])), table])

    tokens, ids = keras.Input((None,), dtype="string"), keras.Input((None,), dtype="int32")
    # The table is a weight. As an initializer it would be text in the saved configuration.
    vectors = keras.layers.Embedding(*table.shape, "zeros", mask_zero=True, weights=table)(ids)
    if mix is not None:
        known = sorted({token for tokens, _ in train for token in tokens})
        layer = elmo_tf.ELMo(arguments.elmo, mix=mix, dropout_rate=0.5, vocabulary=known)
        vectors = keras.layers.Concatenate()([vectors, layer(tokens)])
    lstm = keras.layers.LSTM(arguments.units, return_sequences=True)
    hidden = keras.layers.Bidirectional(lstm)(keras.layers.Dropout(0.3)(vectors))
    # Over real tokens only: the layer uses the mask.
    pooled = keras.layers.GlobalAveragePooling1D()(hidden)
    outputs = keras.layers.Dense(len(arguments.classes))(keras.layers.Dropout(0.3)(pooled))
    model = keras.Model([tokens, ids], outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
    return model, {word: number for number, word in enumerate(words, UNKNOWN + 1)}


def batches(sentences: Sentences, word_ids: dict[str, int], shuffle: bool) -> tf.data.Dataset:
    """Returns batches of tokens and word ids, and class numbers."""
    columns = (
        tf.ragged.constant([tokens for tokens, _ in sentences]),
        tf.ragged.constant([[word_ids.get(token.lower(), UNKNOWN) for token in tokens] for tokens, _ in sentences]),
        tf.constant([label for _, label in sentences]),
    )
    data = tf.data.Dataset.from_tensor_slices(columns)
    data = data.shuffle(len(sentences)) if shuffle else data
    data = data.ragged_batch(BATCH_SIZE)
    return data.map(lambda tokens, ids, labels: ((tokens.to_tensor(), ids.to_tensor()), labels)).prefetch(2)


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"sentence_classifier.py: error: {error}")
