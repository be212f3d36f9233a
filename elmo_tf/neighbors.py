"""The nearest uses in context of a word: what an exported model makes of a word with several senses."""

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError

_BATCH_SIZE = 32


class Use(NamedTuple):
    """A word at one place of one sentence."""

    similarity: float  # cosine of the ELMo vectors, -1 to 1
    sentence: list[str]
    position: int  # of the word in the sentence


def nearest_uses(
    savedmodel: str | os.PathLike, text: str | os.PathLike, word: str, sentence: str, count: int = 10
) -> list[Use]:
    """Returns the uses of `word` in a text that are most like its first use in `sentence`, best first.

    Args:
        savedmodel: a version's folder, as `elmo-tf export` wrote it.
        text: UTF-8, one tokenised sentence a line.
        word: compared as it is written.
        sentence: tokens between white space, `word` among them; its own line in `text` is left out.
        count: uses to return at most.

    Raises:
        InputError: if `word` is not in the sentence or the text, or a file cannot be used.
    """
    if not os.path.isfile(os.path.join(savedmodel, "saved_model.pb")):
        raise InputError(f"--savedmodel: expected a folder with saved_model.pb, found none: {savedmodel}")
    wanted = os.fsencode(word)  # a terminal's bytes, UTF-8 or not
    query = os.fsencode(sentence).split()
    if wanted not in query:
        raise InputError(f"--sentence: expected the word {word!r} in it, found {sentence!r}")
    sentences = [line for line in _lines_with(text, wanted) if line != query]
    if not sentences:
        raise InputError(f"--text: expected a line with the word {word!r}, found none in {text}")
    embed = _load(savedmodel)
    target = _vectors(embed, [query])[0][query.index(wanted)]
    uses = []
    for first in range(0, len(sentences), _BATCH_SIZE):
        batch = sentences[first : first + _BATCH_SIZE]
        for tokens, vectors in zip(batch, _vectors(embed, batch), strict=True):
            for position in (place for place, token in enumerate(tokens) if token == wanted):
                uses.append(Use(_cosine(target, vectors[position]), [token.decode() for token in tokens], position))
    return sorted(uses, key=lambda use: -use.similarity)[:count]


def _load(savedmodel: str | os.PathLike):
    try:
        signatures = tf.saved_model.load(str(savedmodel)).signatures
    except (OSError, tf.errors.OpError) as error:
        raise InputError(f"--savedmodel: expected an intact SavedModel, found {error}: {savedmodel}") from None
    if "tokens" not in signatures:
        expected = "a model of `elmo-tf export` with the signature tokens"
        raise InputError(f"--savedmodel: expected {expected}, found {sorted(signatures)}: {savedmodel}")
    return signatures["tokens"]


def _lines_with(text: str | os.PathLike, word: bytes) -> Iterator[list[bytes]]:
    """Yields the tokens of each different sentence that has the word."""
    seen = set()
    try:
        with open(text, encoding="utf-8", newline="\n") as lines:  # as in preprocessing, nothing else ends a line
            for line in lines:
                tokens = line.encode().split()
                if word in tokens and tuple(tokens) not in seen:
                    seen.add(tuple(tokens))
                    yield tokens
    except UnicodeDecodeError as error:
        raise InputError(f"--text: expected UTF-8, found {error.reason} in {text}") from None
    except OSError as error:
        raise InputError(f"--text: expected a file, found {error.strerror}: {text}") from None


def _vectors(embed, batch: list[list[bytes]]) -> np.ndarray:
    """Returns the ELMo vectors float32 `(batch, max_length, dim)`."""
    longest = max(len(tokens) for tokens in batch)
    tokens = [tokens + [b""] * (longest - len(tokens)) for tokens in batch]
    lengths = [len(tokens) for tokens in batch]
    return embed(tokens=tf.constant(tokens), sequence_len=tf.constant(lengths, tf.int32))["elmo"].numpy()


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    cosine = one @ other / (np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.clip(cosine, -1, 1))  # rounding may step over
