"""Parts of functional Keras models: a system's token vectors, and the biLSTM above them."""

import collections
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from elmo_tf import sources
from elmo_tf.annotated.word_vectors import read_word_vectors
from elmo_tf.keras_layer import ELMo
from elmo_tf.model.fast import BiLM
from elmo_tf.tasks.layers.mixed_layers import MixedLayers
from elmo_tf.tasks.layers.token_layers import Spelling, WordEmbedding
from elmo_tf.tasks.recipe import Recipe

# Tokens of a sentence.
Tokens = Sequence[str]


class Vectors(NamedTuple):
    """A sentence's token vectors, float32 `(batch, time, dim)` each, with the same Keras mask."""

    # Word vectors and spelling.
    static: keras.KerasTensor
    # ELMo for the input of the lowest recurrent layer, and for its output; None where the recipe has no ELMo.
    elmo: keras.KerasTensor | None
    elmo_above: keras.KerasTensor | None

    @property
    def below(self) -> keras.KerasTensor:
        """The input of the lowest recurrent layer."""
        return joined(self.static, self.elmo)

    def above(self, hidden: keras.KerasTensor) -> keras.KerasTensor:
        """Returns the lowest recurrent layer's output, with ELMo if the recipe puts it there."""
        return joined(hidden, self.elmo_above)


class TokenVectors:
    """Embeds tokens. All calls share the layers, for instance for both sentences of a pair.

    Args:
        recipe: which vectors to use.
        words: the words that have a vector, and their vectors, from `word_table`.
        elmo: the biLM, as for `ELMo`; or another model, as for `MixedLayers`; None: no ELMo.
    """

    def __init__(self, recipe: Recipe, words: "WordTable", elmo: sources.Path | keras.layers.Layer | None):
        from_file = len(words.vectors) > 0
        trainable = recipe.words.trainable or not from_file
        dim = words.vectors.shape[1] if from_file else recipe.words.dim
        embedding = WordEmbedding(words.words, dim, recipe.words.lower, trainable, name="words")
        if from_file:
            embedding.set_vectors(words.vectors, zero_unknown=not trainable)
        self._static: list[keras.layers.Layer] = [embedding]
        if recipe.spelling.filters:
            spelled = recipe.spelling
            widths = (spelled.width, *spelled.more_widths)
            self._static.append(Spelling(spelled.filters, spelled.dim, widths, name="spelling"))
        self._place = recipe.elmo.place
        self.elmo: ELMo | MixedLayers | None = None
        if elmo is not None and self._place != "none":
            settings = recipe.elmo
            is_other_model = isinstance(elmo, keras.layers.Layer) and not isinstance(elmo, BiLM)
            kind: Any = MixedLayers if is_other_model else ELMo
            self.elmo = kind(
                elmo,
                2 if self._place == "both" else 1,
                settings.mix,
                penalty=settings.penalty if settings.mix == "learned" else 0.0,
                layer_norm=settings.layer_norm,
                gamma=settings.gamma,
                dropout_rate=settings.dropout_rate,
                name="elmo",
            )

    def __call__(self, tokens: keras.KerasTensor) -> Vectors:
        """Returns the vectors of `tokens`, string `(batch, time)`, padded on the right with `""`."""
        static = joined(*(layer(tokens) for layer in self._static))
        if self.elmo is None:
            return Vectors(static, None, None)
        mixed = self.elmo(tokens)
        below, above = {"both": mixed, "input": (mixed, None), "output": (None, mixed)}[self._place]
        return Vectors(static, below, above)


class WordTable(NamedTuple):
    """The words with a vector; those whose vector is from a file come first."""

    words: list[str]
    vectors: np.ndarray  # float32 (words of the files, dim)
    files: tuple[dict[str, Any], ...] = ()  # of each its name, and how many numbers and how many of the words it has


def word_table(
    recipe: Recipe,
    train: Iterable[Tokens],
    others: Iterable[Tokens],
    glove: Sequence[str | os.PathLike] = (),
    strict: bool = False,
) -> WordTable:
    """Returns the words with a vector: those of `train`, and those of `others` found in the files `glove`.

    The vectors of several files stand side by side; a file that lacks a word has zeros there. An odd line is skipped
    with a warning, or an error if `strict`.
    """

    def words_of(sentences: Iterable[Tokens]) -> Iterator[str]:
        for tokens in sentences:
            for token in encoded(tokens):
                yield token.decode().lower() if recipe.words.lower else token.decode()

    counts = collections.Counter(words_of(train))
    learned = [word for word, count in sorted(counts.items()) if count >= recipe.words.min_count]
    if not glove:
        return WordTable(learned, np.zeros((0, 0), np.float32))
    wanted = counts.keys() | words_of(others)
    by_file = [read_word_vectors(path, wanted, strict) for path in glove]
    words = list(dict.fromkeys(word for of_file, _ in by_file for word in of_file))
    rows, columns, files = {word: row for row, word in enumerate(words)}, [], []
    for path, (of_file, vectors) in zip(glove, by_file, strict=True):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True) if recipe.words.normalize else np.ones(1, np.float32)
        columns.append(np.zeros((len(words), vectors.shape[1]), np.float32))
        columns[-1][[rows[word] for word in of_file]] = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
        files.append({"file": str(path), "dim": vectors.shape[1], "words": len(of_file)})
    if recipe.words.trainable:
        words += sorted(set(learned) - set(words))
    return WordTable(words, np.concatenate(columns, 1), tuple(files))


class BiLSTM:
    """Layers of a functional model: variational dropout of the input, then an LSTM in each direction.

    In variational dropout, all tokens of a sentence share a mask. `penalty` is the L2 penalty of the weights without
    the biases. All calls share the weights.
    """

    def __init__(self, units: int, dropout_rate: float = 0.0, penalty: float = 0.0):
        penalized = keras.regularizers.L2(penalty) if penalty else None
        self._dropout = keras.layers.SpatialDropout1D(dropout_rate)
        options = {"return_sequences": True, "kernel_regularizer": penalized, "recurrent_regularizer": penalized}
        self._lstms = keras.layers.Bidirectional(keras.layers.LSTM(units, **options))

    def __call__(self, vectors: keras.KerasTensor) -> keras.KerasTensor:
        """Returns `(batch, time, 2 * units)` for `(batch, time, dim)` with a Keras mask."""
        return self._lstms(self._dropout(vectors))


def joined(*vectors: keras.KerasTensor | None) -> keras.KerasTensor:
    """Returns the vectors that are not None, side by side."""
    present = [vector for vector in vectors if vector is not None]
    return keras.layers.Concatenate()(present) if len(present) > 1 else present[0]


def padded(sentences: Sequence[Tokens]) -> np.ndarray:
    """Returns tokens as object `(sentences, longest)` of bytes, padded on the right with `b""`."""
    rows = np.full((len(sentences), max(map(len, sentences))), b"", object)
    for row, tokens in zip(rows, sentences, strict=True):
        row[: len(tokens)] = encoded(tokens)
    return rows


def encoded(tokens: Tokens) -> list[bytes]:
    """Returns tokens in UTF-8.

    Half of a surrogate pair, as where a text was cut inside an emoji, becomes a question mark.
    """
    return [token.encode("utf-8", "replace") for token in tokens]
