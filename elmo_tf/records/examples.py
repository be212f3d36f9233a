"""Decodes many serialized `tf.train.Example`s at once."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.text import vocabulary as vocabulary_lib

_FEATURES = {
    "token_ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "char_ids": tf.io.FixedLenFeature([], tf.string),
    "char_lengths": tf.io.FixedLenFeature([], tf.string),
}


class UnfitRecordError(Exception):
    """The record of index `number` is not a sentence; `problem` says why."""

    def __init__(self, problem: str, number: int):
        super().__init__(problem, number)
        self.problem, self.number = problem, number


class Sentences(NamedTuple):
    """Sentences end to end."""

    num_tokens: np.ndarray  # int64 (num_sentences,), <S> and </S> included
    token_ids: np.ndarray  # int32 (sum(num_tokens),)
    char_lengths: np.ndarray  # uint8 (sum(num_tokens - 2),), without <S> and </S>
    char_bytes: np.ndarray  # uint8 (sum(char_lengths),), the bytes of the words


def decode_examples(records: list[bytes], vocab_size: int) -> Sentences:
    """Returns the sentences of one or more serialized `tf.train.Example`s, with token ids below `vocab_size`.

    Raises:
        UnfitRecordError: if a record lacks a feature, or its features do not fit together.
    """
    features = _parsed(records)
    ids, num_tokens = features["token_ids"].values.numpy(), features["token_ids"].row_lengths().numpy()
    char_bytes, num_bytes = _joined(features["char_ids"])
    char_lengths, num_words = _joined(features["char_lengths"])
    # The sum of each record's lengths.
    ends = np.cumsum(num_words)
    sums = np.concatenate([[0], np.cumsum(char_lengths, dtype=np.int64)])
    num_spelled = sums[ends] - sums[ends - num_words]
    for number in np.flatnonzero(num_tokens != num_words + 2)[:1]:
        problem = f"it has {num_tokens[number]} token_ids, not two more than its {num_words[number]} char_lengths"
        raise UnfitRecordError(problem, number)
    for number in np.flatnonzero(num_spelled != num_bytes)[:1]:
        problem = f"it has {num_bytes[number]} bytes of char_ids; its char_lengths add up to {num_spelled[number]}"
        raise UnfitRecordError(problem, number)
    _check_ids(ids, num_tokens, vocab_size)
    return Sentences(num_tokens, ids.astype(np.int32), char_lengths, char_bytes)


def _parsed(records: list[bytes]) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    try:
        return tf.io.parse_example(records, _FEATURES)
    # TensorFlow quotes the record in its message, which may then not be UTF-8.
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        if len(records) == 1:
            raise UnfitRecordError("it has no token_ids, char_ids or char_lengths", 0) from None
    # TensorFlow does not always say which record it is.
    for number, record in enumerate(records):
        try:
            _parsed([record])
        except UnfitRecordError as error:
            raise UnfitRecordError(error.problem, number) from None
    raise AssertionError("each record can be parsed alone, but not all together")


def _joined(strings: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bytes of all strings, uint8, and the length of each, int64."""
    values = strings.numpy().tolist()
    return np.frombuffer(b"".join(values), np.uint8), np.fromiter(map(len, values), np.int64, len(values))


def _check_ids(ids: np.ndarray, num_tokens: np.ndarray, vocab_size: int) -> None:
    last = np.cumsum(num_tokens) - 1
    first = last + 1 - num_tokens
    wrong = (ids < 0) | (ids >= vocab_size)
    wrong[first] |= ids[first] != vocabulary_lib.BEGIN_ID
    wrong[last] |= ids[last] != vocabulary_lib.END_ID
    for position in np.flatnonzero(wrong)[:1]:
        number = np.searchsorted(last, position)
        problem = (
            f"its token_ids have {ids[position]} as number {position - first[number]} of {num_tokens[number]}; they "
            f"should begin with {vocabulary_lib.BEGIN_ID}, end with {vocabulary_lib.END_ID} and be below {vocab_size}"
        )
        raise UnfitRecordError(problem, number)
