"""Calls to the signatures of a loaded model, with the same sentences in every form."""

import numpy as np
import tensorflow as tf

from tests import checks
from tests.helpers import batch_char_ids

TEXT = [
    b"The bank of the river .",
    b"",
    b"  A\tbank lends\nmoney to whoever asks  ",
    "naïve 日本語".encode(),
    b"x" * 200 + b" <S> \x00 </S>",
]
WORDS = [sentence.split() for sentence in TEXT]
LENGTHS = [len(words) for words in WORDS]
LONGEST = max(LENGTHS)
PADDED = [words + [b""] * (LONGEST - len(words)) for words in WORDS]
SAME = checks.TOLERANCE
# Outputs that are not vectors of the network.
TEXTS = ("tokens", "offsets")


def numbers_of(outputs: dict[str, tf.Tensor | np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the outputs that every signature has."""
    return {name: np.asarray(value) for name, value in outputs.items() if name not in TEXTS}


def embed(model, sentences: list[bytes], name: str = "default") -> dict[str, np.ndarray]:
    outputs = model.signatures[name](strings=tf.constant(sentences, tf.string))
    return numbers_of(outputs)


def embed_tokens(model, sentences: list[list[bytes]], max_length: int, filler: bytes = b"") -> dict[str, np.ndarray]:
    tokens = [words + [filler] * (max_length - len(words)) for words in sentences]
    lengths = tf.constant([len(words) for words in sentences], tf.int32)
    outputs = model.signatures["tokens"](tokens=tf.constant(tokens, tf.string), sequence_len=lengths)
    return numbers_of(outputs)


def embed_char_ids(model, sentences: list[list[bytes]], max_length: int) -> dict[str, np.ndarray]:
    outputs = model.signatures["char_ids"](char_ids=tf.constant(batch_char_ids(sentences, max_length)))
    return numbers_of(outputs)


def assert_same(outputs: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert outputs.keys() == expected.keys()
    for name, value in outputs.items():
        np.testing.assert_allclose(value, expected[name], **SAME, err_msg=name)
