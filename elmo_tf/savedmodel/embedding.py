"""Vectors of sentences from an exported model: what `elmo-tf embed` and `elmo-tf neighbors` compute with.

TensorFlow is imported when a model is loaded, not before: who only asks about a model does not wait for it.
"""

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from elmo_tf import loading
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import checksums

LAYERS = ("all", "top", "average", "mix")
BATCH_TOKENS = 2048  # positions of a batch, padding included
PIECE_TOKENS = 5000  # of a longer sentence, what is embedded at a time: memory grows with the longest row
_SIGNATURE = "tokens"

Words = Sequence[bytes]  # the tokens of a sentence


class Model(NamedTuple):
    """An exported model on disk."""

    path: pathlib.Path  # the version's folder
    num_layers: int  # the token layer included
    dim: int  # of a vector: 2P
    tokenizer: str  # with which the signature `default` splits sentences

    def shape(self, layers: str) -> tuple[int, ...]:
        """Returns the shape of a token's vectors: `(num_layers, dim)` for "all", else `(dim,)`."""
        return (self.num_layers, self.dim) if layers == "all" else (self.dim,)

    def sha256(self) -> str:
        """Returns a checksum of the graph and the weights, once all files are seen to be as they were exported.

        Raises:
            InputError: naming a file that is not.
        """
        checksums.check(self.path, thorough=True)
        listed = checksums.read(self.path).items()
        counts = [f"{name} {about['sha256']}" for name, about in listed if not name.startswith("assets")]
        return hashlib.sha256("\n".join(counts).encode()).hexdigest()


def find_model(savedmodel: str | os.PathLike) -> Model:
    """Returns the model in a version's folder, or the newest version in a model's folder.

    Raises:
        InputError: if there is none, or it is not one of `elmo-tf export` or `import`.
    """
    folder = checksums.find_version(savedmodel)
    checksums.check(folder)
    try:
        lstm = json.loads((folder / "assets" / "config.json").read_bytes())["model"]["lstm"]
        about = json.loads((folder / "assets" / "provenance.json").read_bytes())
        return Model(folder, lstm["num_layers"] + 1, 2 * lstm["projection_dim"], about["tokenizer"])
    except (OSError, ValueError, LookupError, TypeError):
        expected = "a model of `elmo-tf export` or `import`, with assets/config.json and provenance.json"
        raise InputError(f"--savedmodel: expected {expected}, found another: {folder}") from None


class Embedder:
    """A loaded model. Several threads may use it at the same time."""

    def __init__(self, model: Model, batch_tokens: int = BATCH_TOKENS, num_threads: int | None = None):
        """Loads a model.

        Args:
            model: which.
            batch_tokens: positions of a batch at most, but for a single sentence that has more.
            num_threads: that TensorFlow may compute with; None: as many as there are cores. Without effect where it
                has begun to compute.

        Raises:
            InputError: if it is damaged, or lacks the contract's signatures.
        """
        self._batch_tokens = batch_tokens
        self._loaded = _open(model, num_threads)
        self._signature = self._loaded.signatures[_SIGNATURE]

    def mix_weights(self) -> np.ndarray:
        """Returns the factor of each layer in the ELMo vector, float32 `(num_layers,)`: gamma times its weight."""
        parameters, gamma = (variable.numpy() for variable in self._loaded.trainable_variables)
        exps = np.exp(parameters - parameters.max())
        return gamma * exps / exps.sum()

    def embed(
        self, sentences: Sequence[Words], layers: str = "all", told: Callable[[list[int]], None] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the vectors of each sentence that has tokens, with its place in `sentences`: the shortest first.

        Sentences of about the same length share a batch. Which ones do depends on their lengths alone.

        Args:
            sentences: to embed, of any lengths.
            layers: one of `LAYERS`.
            told: called after each batch with the places of its sentences.

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
            if told:
                told(batch)

    def _vectors(self, batch: list[Words], layers: str) -> list[np.ndarray]:
        import tensorflow as tf  # noqa: PLC0415 - see above

        lengths = [len(tokens) for tokens in batch]
        padded = [[*tokens, *[b""] * (max(lengths) - len(tokens))] for tokens in batch]
        outputs = self._signature(tokens=tf.constant(padded), sequence_len=tf.constant(lengths, tf.int32))
        vectors = outputs["elmo" if layers == "mix" else "layers"].numpy()
        choose = {"all": lambda one: one, "mix": lambda one: one, "top": lambda one: one[-1], "average": _average}
        return [choose[layers](one[..., :length, :]) for one, length in zip(vectors, lengths, strict=True)]


def _average(layers: np.ndarray) -> np.ndarray:
    return layers.mean(axis=0, dtype=np.float32)


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yields places of sentences that share a batch, by ascending length; those without tokens are left out."""
    batch: list[int] = []
    for place in np.argsort(lengths, kind="stable").tolist():
        # A sentence that is embedded in pieces comes alone.
        if batch and (lengths[place] * (len(batch) + 1) > batch_tokens or lengths[place] > PIECE_TOKENS):
            yield batch
            batch = []
        if lengths[place]:
            batch.append(place)
    if batch:
        yield batch


def _open(model: Model, num_threads: int | None = None) -> Any:
    """Returns the loaded SavedModel."""
    with loading.tensorflow():
        import tensorflow as tf  # noqa: PLC0415 - see above

        from elmo_tf.savedmodel import opening  # noqa: PLC0415 - it imports TensorFlow

        with contextlib.suppress(RuntimeError):  # it has begun to compute
            for gpu in tf.config.list_physical_devices("GPU"):  # of which other processes may want some memory too
                tf.config.experimental.set_memory_growth(gpu, True)
            if num_threads is not None:
                tf.config.threading.set_intra_op_parallelism_threads(num_threads)
        return opening.open_savedmodel(model.path).loaded
