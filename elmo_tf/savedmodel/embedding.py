"""Vectors of sentences from an exported model, for `elmo-tf embed`, `elmo-tf neighbors` and the probes.

TensorFlow is imported when a model is loaded: to find a model takes no time.
"""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import assets, checksums, finding
from elmo_tf.text.tokens import to_bytes

LAYERS = ("all", "top", "average", "mix")
# Positions of a batch, padding included.
BATCH_TOKENS = 2048
# A longer sentence is embedded in pieces of so many tokens, because memory grows with the longest row.
PIECE_TOKENS = 5000

# The tokens of a sentence.
Words = Sequence[bytes]
# A sentence to split, or its tokens.
Text = str | bytes | Sequence[str | bytes] | np.ndarray


class Model(NamedTuple):
    """An exported model on disk."""

    # The version's folder.
    path: pathlib.Path
    # The token layer included.
    num_layers: int
    # Of a vector: twice the projection.
    dim: int
    # How the signature `default` splits sentences.
    tokenizer: str

    def shape(self, layers: str) -> tuple[int, ...]:
        """Returns the shape of a token's vectors: `(num_layers, dim)` for "all", else `(dim,)`."""
        return (self.num_layers, self.dim) if layers == "all" else (self.dim,)

    def sha256(self) -> str:
        """Returns a checksum of the graph and the weights, after comparing all files with their list.

        Raises:
            InputError: naming a file that is damaged, missing or unknown.
        """
        with finding.repairable(self.path):
            checksums.check(self.path, thorough=True)
        listed = checksums.read(self.path).items()
        counts = [f"{name} {about['sha256']}" for name, about in listed if not name.startswith("assets")]
        return hashlib.sha256("\n".join(counts).encode()).hexdigest()


def find_model(savedmodel: str | os.PathLike) -> Model:
    """Returns the model in a version's folder, the newest version in a model's folder, or the model of that name.

    Raises:
        InputError: if there is none, or it is not one of `elmo-tf export` or `import`.
    """
    folder = finding.find_version(savedmodel)
    with finding.repairable(folder):
        checksums.check(folder)
    lstm = assets.read_config(folder).lstm
    tokenizer = assets.read_provenance(folder)["tokenizer"]
    return Model(folder, lstm.num_layers + 1, 2 * lstm.projection_dim, tokenizer)


class Embedding(NamedTuple):
    """The vectors of a sentence, and what each belongs to."""

    # UTF-8.
    tokens: list[bytes]
    # float32 `(num_layers, tokens, dim)` for all layers, else `(tokens, dim)`.
    vectors: np.ndarray


class Embedder:
    """A loaded model. Several threads may use it at the same time."""

    def __init__(self, model: Model, batch_tokens: int = BATCH_TOKENS, num_threads: int | None = None):
        """Loads a model.

        Args:
            model: the model to load.
            batch_tokens: the largest number of positions in a batch of several sentences.
            num_threads: set where several processes share the machine: TensorFlow then computes with so many threads,
                and takes memory of a GPU as it needs it. Has no effect if TensorFlow has computed before. None:
                TensorFlow's settings stay as they are.

        Raises:
            InputError: if the model is damaged, or does not have the contract's signatures.
        """
        self._model, self._batch_tokens = model, batch_tokens
        self._loaded = _open(model, num_threads)
        self._signature = self._loaded.signatures["tokens"]

    def mix_weights(self) -> np.ndarray:
        """Returns the factor of each layer in the ELMo vector, float32 `(num_layers,)`: gamma times its weight."""
        parameters, gamma = (variable.numpy() for variable in self._loaded.trainable_variables)
        exps = np.exp(parameters - parameters.max())
        return gamma * exps / exps.sum()

    def embed(
        self, sentences: Sequence[Words], layers: str = "all", progress: Callable[[list[int]], None] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the vectors of each sentence that has tokens, with its place in `sentences`, the shortest first.

        Sentences of about the same length share a batch. The batches depend only on the lengths.

        Args:
            sentences: to embed, of any lengths.
            layers: one of `LAYERS`.
            progress: called after each batch with the places of its sentences.

        Yields:
            the place, and float32 `(num_layers, tokens, dim)` for "all", else `(tokens, dim)`.
        """
        for batch in batches([len(sentence) for sentence in sentences], self._batch_tokens):
            chosen = [sentences[place] for place in batch]
            if len(chosen[-1]) > PIECE_TOKENS:
                pieces = [chosen[0][start : start + PIECE_TOKENS] for start in range(0, len(chosen[0]), PIECE_TOKENS)]
                found = [np.concatenate([self._vectors([piece], layers)[0] for piece in pieces], axis=-2)]
            else:
                found = self._vectors(chosen, layers)
            yield from zip(batch, found, strict=True)
            if progress:
                progress(batch)

    def embed_texts(self, texts: Sequence[Text], layers: str = "all") -> list[Embedding]:
        """Returns tokens and vectors of each text, in the order of the texts.

        Args:
            texts: sentences, split as the model's signature `default` does; or lists of tokens.
            layers: one of `LAYERS`.

        Raises:
            InputError: naming the first text of another type.
        """
        sentences = _split(texts, self._model.tokenizer)
        found = [np.zeros((*self._model.shape(layers)[:-1], 0, self._model.dim), np.float32)] * len(sentences)
        for place, vectors in self.embed(sentences, layers):
            # A copy, so that the memory of the batch can be freed.
            found[place] = np.ascontiguousarray(vectors)
        return [Embedding(list(tokens), vectors) for tokens, vectors in zip(sentences, found, strict=True)]

    def _vectors(self, batch: list[Words], layers: str) -> list[np.ndarray]:
        import tensorflow as tf  # noqa: PLC0415 - see the top

        lengths = [len(tokens) for tokens in batch]
        padded = [[*tokens, *[b""] * (max(lengths) - len(tokens))] for tokens in batch]
        outputs = self._signature(tokens=tf.constant(padded), sequence_len=tf.constant(lengths, tf.int32))
        vectors = outputs["elmo" if layers == "mix" else "layers"].numpy()
        choose = {"all": lambda one: one, "mix": lambda one: one, "top": lambda one: one[-1], "average": _average}
        return [choose[layers](one[..., :length, :]) for one, length in zip(vectors, lengths, strict=True)]


def _average(layers: np.ndarray) -> np.ndarray:
    return layers.mean(axis=0, dtype=np.float32)


def _split(texts: Sequence[Text], tokenizer: str) -> list[list[bytes]]:
    """Returns the tokens of each text."""
    sentences: list[list[bytes]] = []
    for text in texts:
        given = [text] if isinstance(text, str | bytes) else text
        if not isinstance(given, Sequence | np.ndarray):
            raise InputError("texts", "sentences, or lists of tokens", repr(text))
        sentences.append([to_bytes(one, "texts") for one in given])
    raw = [place for place, text in enumerate(texts) if isinstance(text, str | bytes)]
    if tokenizer == "whitespace":
        for place in raw:
            sentences[place] = sentences[place][0].split()
    elif raw:
        from elmo_tf.text import raw_text  # noqa: PLC0415 - it imports TensorFlow

        for place, tokens in zip(raw, raw_text.tokenize([sentences[place][0] for place in raw]), strict=True):
            sentences[place] = tokens.numpy().tolist()
    return sentences


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yields the places of sentences that share a batch, by ascending length, without sentences that have no tokens."""
    batch: list[int] = []
    for place in np.argsort(lengths, kind="stable").tolist():
        # A sentence that is embedded in pieces is a batch of its own.
        if batch and (lengths[place] * (len(batch) + 1) > batch_tokens or lengths[place] > PIECE_TOKENS):
            yield batch
            batch = []
        if lengths[place]:
            batch.append(place)
    if batch:
        yield batch


def _open(model: Model, num_threads: int | None = None) -> Any:
    """Returns the loaded SavedModel."""
    import tensorflow as tf  # noqa: PLC0415 - see the top

    from elmo_tf.savedmodel import opening  # noqa: PLC0415 - it imports TensorFlow

    if num_threads is not None:
        # Raised once TensorFlow has computed.
        with contextlib.suppress(RuntimeError):
            for gpu in tf.config.list_physical_devices("GPU"):
                tf.config.experimental.set_memory_growth(gpu, True)
            tf.config.threading.set_intra_op_parallelism_threads(num_threads)
    return opening.open_savedmodel(model.path).loaded
