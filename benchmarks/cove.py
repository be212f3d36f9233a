"""CoVe (McCann et al. 2017), for comparison: the biLSTM layers of a small English to German translator.

    python benchmarks/cove.py train --data DIR --workdir DIR --epochs 20
    python benchmarks/cove.py translate --data DIR --workdir DIR > test.de

--data is a folder with multi30k (the data of CoVe's MT-Small) and glove_small. `train` saves each epoch and resumes;
`translate` prints the test set of 2016 in German, for `sacrebleu REFERENCE -i test.de -w 2` (PyPI: sacrebleu 2.6).

The encoder is CoVe's: two biLSTM layers of 300 units per direction. The decoder is smaller, one LSTM layer of 300
units with attention. A word's vector has 275 learned numbers and 25 fixed ones of GloVe (Twitter, 11,925 words), where
CoVe has 300 fixed ones of GloVe's 2.2 million words.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from elmo_tf.annotated.numbered_lines import lines
from elmo_tf.files import stores
from elmo_tf.text import penn

UNITS, WORD_DIM, GLOVE_DIM, READOUT_DIM, DROPOUT_RATE = 300, 275, 25, 300, 0.3
LEARNING_RATE, CLIP_NORM = 0.002, 5.0  # Adam; the rate falls by the same amount after each epoch
BATCH, POOL, BEAM, LONGEST = 64, 50, 5, 50  # pairs; batches sorted by length together; translations; words

# The first ids of each language.
PAD, UNKNOWN, BEGIN, END = range(4)


class Words:
    """The ids of a language's words: those given, after padding, unknown, begin and end."""

    def __init__(self, words: Sequence[str]):
        self.words = ["<pad>", "<unk>", "<s>", "</s>", *words]
        self._ids = {word: number for number, word in enumerate(self.words)}

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Returns the id of each token, or of the token in lower case, or `UNKNOWN`."""
        return [self._ids.get(token, self._ids.get(token.lower(), UNKNOWN)) for token in tokens]


def pairs(sources: list[list[list[int]]], targets: list[list[int]], seed: int) -> tf.data.Dataset:
    """Returns batches of sentences and their translations, of similar lengths and in an order that the seed chooses."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(targets))
    pools = np.split(order, range(BATCH * POOL, len(order), BATCH * POOL))
    by_length = [sorted(pool, key=lambda row: (len(targets[row]), len(sources[0][row]))) for pool in pools]
    batches = [pool[start : start + BATCH] for pool in by_length for start in range(0, len(pool), BATCH)]
    random.shuffle(batches)

    def arrays():
        for rows in batches:
            inputs = [padded([ids[row] for row in rows]) for ids in sources]
            before = padded([[BEGIN, *targets[row]] for row in rows])
            yield (*inputs, before), padded([[*targets[row], END] for row in rows])

    # With its shapes: Keras guesses those of a PyDataset from two batches, and fails where these are equally long.
    ids = tf.TensorSpec((None, None), tf.int32)
    dataset = tf.data.Dataset.from_generator(arrays, output_signature=((ids, ids, ids), ids))
    return dataset.apply(tf.data.experimental.assert_cardinality(len(batches))).prefetch(1)


def translator(num_words: int, glove: np.ndarray, num_targets: int) -> keras.Model:
    """Returns the network: a source and the target's words so far to the logits of the next words.

    Its layers `encoder` and `decoder` are models. `encoder` returns word vectors, lower and upper biLSTM layer, float32
    `(batch, time, dim)`, and the state with which the decoder begins.
    """
    layers = keras.layers
    word_ids, glove_ids = (keras.Input((None,), dtype="int32", name=name) for name in ("word_ids", "glove_ids"))
    learned = layers.Embedding(num_words, WORD_DIM, mask_zero=True)(word_ids)
    fixed = layers.Embedding(*glove.shape, weights=[glove], trainable=False, mask_zero=True)(glove_ids)
    vectors = layers.Concatenate()([learned, fixed])
    dropped = layers.Dropout(DROPOUT_RATE)
    lower = layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True))(dropped(vectors))
    upper_layer = layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True, return_state=True))
    upper, *states = upper_layer(dropped(lower))
    hidden, cell = (layers.Dense(UNITS, "tanh")(layers.Concatenate()(states[first::2])) for first in (0, 1))
    encoder = keras.Model([word_ids, glove_ids], [vectors, lower, upper, hidden, cell], name="encoder")

    encoded, before = keras.Input((None, 2 * UNITS)), keras.Input((None,), dtype="int32")
    first_states = [keras.Input((UNITS,)) for _ in range(2)]
    embedded = dropped(layers.Embedding(num_targets, UNITS, mask_zero=True)(before))
    query = layers.LSTM(UNITS, return_sequences=True)(embedded, initial_state=first_states)
    context = layers.Attention()([layers.Dense(2 * UNITS, use_bias=False)(query), dropped(encoded)])
    readout = layers.Dense(READOUT_DIM, "tanh")(dropped(layers.Concatenate()([query, context])))
    logits = layers.Dense(num_targets)(dropped(readout))
    decoder = keras.Model([encoded, *first_states, before], logits, name="decoder")

    target = keras.Input((None,), dtype="int32", name="target")
    return keras.Model([word_ids, glove_ids, target], decoder([*encoder([word_ids, glove_ids])[2:], target]))


@keras.saving.register_keras_serializable("cove")
class Layers(keras.layers.Layer):
    """The layers of a CoVe: its word vector twice, then those of the encoder; `elmo` of `elmo_tf.tasks.runs.train`.

    Args:
        english: the words with learned vectors.
        glove: the words with GloVe's.
        encoder: that of `translator`; None: with random weights, which Keras replaces by those of a file.

    Call arguments:
        tokens: string `(batch, time)`, padded on the right with `""`.

    Returns:
        float32 `(batch, 3, time, 600)`, 0 at padding.
    """

    def __init__(self, english: Sequence[str], glove: Sequence[str], encoder: keras.Model | None = None, **kwargs):
        super().__init__(**kwargs)
        self.supports_jit = False  # XLA has no strings
        self.words = Words(english), Words(glove)
        if encoder is None:
            sizes = [len(words.words) for words in self.words]
            encoder = translator(sizes[0], np.zeros((sizes[1], GLOVE_DIM), np.float32), END + 1).get_layer("encoder")
        self.encoder = encoder

    def call(self, tokens):
        ids = [tf.ensure_shape(rows, (None, None)) for rows in tf.numpy_function(self._ids, [tokens], [tf.int32] * 2)]
        words, *layers, _, _ = self.encoder(ids, training=False)
        stacked = tf.stack([tf.concat([words, words], 2), *layers], 1)
        return stacked * tf.cast(tokens != "", stacked.dtype)[:, None, :, None]

    def compute_output_spec(self, tokens):
        batch, time = tokens.shape
        return keras.KerasTensor((batch, 3, time, self.encoder.outputs[1].shape[2]), self.compute_dtype)

    def get_config(self):
        english, glove = (words.words[END + 1 :] for words in self.words)
        return super().get_config() | {"english": english, "glove": glove}

    def _ids(self, tokens: np.ndarray) -> list[np.ndarray]:
        rows = [[token.decode() for token in row if token] for row in tokens.tolist()]
        return [padded([words.ids(row) for row in rows], tokens.shape[1]) for words in self.words]


class CoVe:
    """A trained or untrained translator in a workdir: `translator.keras` and `words.json`."""

    def __init__(self, workdir: pathlib.Path):
        known = json.loads((workdir / "words.json").read_text("utf-8"))
        self.history = known["history"]  # losses of each epoch
        self.english, self.german, self.glove = (Words(known[name]) for name in ("english", "german", "glove"))
        if self.history:
            self.network = keras.models.load_model(workdir / "translator.keras")

    def source(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Returns the two kinds of ids of each sentence's tokens."""
        return [[words.ids(tokens) for tokens in sentences] for words in (self.english, self.glove)]

    def layers(self) -> Layers:
        """Returns the layers as a Keras layer."""
        words = (words.words[END + 1 :] for words in (self.english, self.glove))
        return Layers(*words, self.network.get_layer("encoder"), name="cove")

    def embed(self, sentences: Sequence[Sequence[str | bytes]]) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the number and the layers of each sentence that is not empty, float32 `(3, tokens, 600)`."""
        layers_of = self.layers()
        order = sorted((row for row, tokens in enumerate(sentences) if tokens), key=lambda row: len(sentences[row]))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            tokens = tf.ragged.constant([list(sentences[row]) for row in rows], dtype=tf.string).to_tensor("")
            for row, layers in zip(rows, layers_of(tokens).numpy(), strict=True):
                yield row, layers[:, : len(sentences[row])]

    def translate(self, tokens: Sequence[Sequence[str]]) -> list[str]:
        """Returns the German sentence of each English one, by beam search without unknown words."""
        order = np.argsort(list(map(len, tokens)))
        translations = [""] * len(tokens)
        for rows in np.split(order, range(BATCH // 4, len(order), BATCH // 4)):
            source = self.source([tokens[row] for row in rows])
            for row, ids in zip(rows, self._search([padded(ids) for ids in source]), strict=True):
                translations[row] = joined([self.german.words[word_id] for word_id in ids])
        return translations

    def _search(self, source: Sequence[np.ndarray]) -> list[list[int]]:
        """Returns the ids of the likeliest translations by the mean log-probability of their words."""
        count, decoder = len(source[0]), self.network.get_layer("decoder")
        repeated = [np.repeat(ids, BEAM, 0) for ids in source]
        encoded = self.network.get_layer("encoder")(repeated, training=False)[2:]
        before = np.full((count * BEAM, 1), BEGIN, np.int32)
        scores = np.tile([0.0, *[-np.inf] * (BEAM - 1)], (count, 1))  # the beams begin alike
        for _ in range(LONGEST):
            steps = tf.nn.log_softmax(decoder([*encoded, tf.constant(before)], training=False)[:, -1]).numpy()
            ended = np.isin(before[:, -1], (PAD, END))
            steps[ended] = -np.inf
            steps[:, [PAD, UNKNOWN, BEGIN]] = -np.inf
            steps[ended, PAD] = 0.0
            sums = (scores[:, :, None] + steps.reshape(count, BEAM, -1)).reshape(count, -1)
            best = np.argpartition(-sums, BEAM, 1)[:, :BEAM]
            scores = np.take_along_axis(sums, best, 1)
            beams, words = np.divmod(best, steps.shape[1])
            rows = (np.arange(count)[:, None] * BEAM + beams).reshape(-1)
            before = np.concatenate([before[rows], words.reshape(-1, 1).astype(np.int32)], 1)
            if np.isin(before[:, -1], (PAD, END)).all():
                break
        means = scores / (before[:, 1:] != PAD).sum(1).reshape(count, BEAM)
        chosen = before.reshape(count, BEAM, -1)[np.arange(count), means.argmax(1), 1:]
        return [[int(word_id) for word_id in ids if word_id not in (PAD, END)] for ids in chosen]


def padded(rows: Sequence[Sequence[int]], width: int | None = None) -> np.ndarray:
    """Returns ids padded on the right with 0, int32 `(rows, width)`; None: as wide as the longest."""
    matrix = np.zeros((len(rows), max(map(len, rows)) if width is None else width), np.int32)
    for target, ids in zip(matrix, rows, strict=True):
        target[: len(ids)] = ids
    return matrix


def joined(tokens: Sequence[str]) -> str:
    """Returns words and punctuation marks as running text."""
    return re.sub(r'" (.*?) "', r'"\1"', re.sub(r" ([.,!?:;)])", r"\1", " ".join(tokens)).replace("( ", "("))


def read(data: pathlib.Path, name: str, language: str) -> list[list[str]]:
    """Returns the tokens of each sentence of a part of Multi30k."""
    text = gzip.decompress((data / "multi30k" / f"{name}.{language}.gz").read_bytes()).decode()
    return [penn.split(line) for line in text.splitlines()]


def read_glove(data: pathlib.Path) -> tuple[list[str], np.ndarray]:
    """Returns the words of glove_small, and the vectors of their ids, scaled as the learned ones; the first are 0."""
    rows = [line.text.split(" ") for line in lines(data / "glove_small/glove.twitter.27B.25d.12k.txt")]
    vectors = np.array([row[-GLOVE_DIM:] for row in rows], np.float32)
    return [row[0] for row in rows], np.concatenate([np.zeros((END + 1, GLOVE_DIM), np.float32), vectors])


def train(data: pathlib.Path, workdir: pathlib.Path, epochs: int) -> None:
    """Trains until there are that many epochs, and saves after each."""
    texts = {(name, code): read(data, name, code) for name in ("train", "val") for code in ("en", "de")}
    glove, vectors = read_glove(data)
    words = {}
    for language, code, fewest in (("english", "en", 2), ("german", "de", 3)):
        counts = collections.Counter(word for tokens in texts["train", code] for word in tokens)
        words[language] = [word for word, times in counts.most_common() if times >= fewest]
    known = {"history": [], **words, "glove": glove}
    if not (workdir / "words.json").exists():
        workdir.mkdir(parents=True, exist_ok=True)
        stores.write(workdir / "words.json", json.dumps(known).encode())
    model = CoVe(workdir)
    if not model.history:
        keras.utils.set_random_seed(0)
        model.network = translator(len(model.english.words), vectors, len(model.german.words))
        optimizer = keras.optimizers.Adam(global_clipnorm=CLIP_NORM)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PAD)
        model.network.compile(optimizer, loss, jit_compile=False)  # XLA would compile for each shape
    for epoch in range(len(model.history), epochs):
        parts = {}
        for name in ("train", "val"):
            german_ids = [model.german.ids(tokens) for tokens in texts[name, "de"]]
            parts[name] = pairs(model.source(texts[name, "en"]), german_ids, seed=epoch)
        model.network.optimizer.learning_rate = LEARNING_RATE * (1 - epoch / epochs)
        losses = model.network.fit(parts["train"], validation_data=parts["val"], shuffle=False, verbose=2).history
        model.network.save(workdir / "incomplete.keras")
        os.replace(workdir / "incomplete.keras", workdir / "translator.keras")
        known["history"] = model.history = [*model.history, {name: by_epoch[-1] for name, by_epoch in losses.items()}]
        stores.write(workdir / "words.json", json.dumps(known).encode())


def main(argv: list[str] | None = None) -> None:
    """Trains, or translates the test set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("train", "translate"))
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder with multi30k and glove_small")
    parser.add_argument("--workdir", type=pathlib.Path, required=True, help="made if it does not exist")
    parser.add_argument("--epochs", type=int, default=20, help="of train, in all (20)")
    arguments = parser.parse_args(argv)
    if arguments.action == "train":
        train(arguments.data, arguments.workdir, arguments.epochs)
    else:
        print("\n".join(CoVe(arguments.workdir).translate(read(arguments.data, "test_2016_flickr", "en"))))


if __name__ == "__main__":
    main()
