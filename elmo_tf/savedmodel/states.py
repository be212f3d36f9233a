"""The LSTM states of a SavedModel: their names, and those that a model starts from."""

import hashlib
import itertools
import os
import pathlib
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.bilm.names import DIRECTIONS
from elmo_tf.bilm.walk import States
from elmo_tf.errors import InputError
from elmo_tf.text import in_graph

_STREAMS = 32  # that are averaged
_SENTENCES = 1024  # of a text, that are read
_PARTS = ("cell", "recurrent")
_COMPRESSED = (".bz2", ".gz", ".xz", ".zip", ".zst")


def names(num_layers: int) -> list[str]:
    """Returns the names of all states, in the order of `tf.nest.flatten` of `States`."""
    numbers = range(1, num_layers + 1)
    return [f"{direction}_{part}{number}" for direction in DIRECTIONS for number in numbers for part in _PARTS]


def by_name(states: States) -> dict[str, tf.Tensor]:
    """Returns states by their names."""
    return dict(zip(names(len(states[0])), tf.nest.flatten(states), strict=True))


def nested(states: dict[str, tf.Tensor]) -> States:
    """Returns states by name as `States`."""
    number = len(states) // (len(DIRECTIONS) * len(_PARTS))
    values = iter(states[name] for name in names(number))
    return tuple(tuple((next(values), next(values)) for _ in range(number)) for _ in DIRECTIONS)


def zero(bilm: BiLM) -> States:
    """Returns variables of one row, zero: the states before every sentence."""
    return tf.nest.map_structure(lambda state: tf.Variable(state, trainable=False), bilm.zero_states(1))


class TypicalText(NamedTuple):
    """What a model is warmed up with."""

    sentences: list[bytes]
    sha256: str  # of the whole file


def read_typical(path: str | os.PathLike) -> TypicalText:
    """Returns the first lines with words of a text file.

    Raises:
        InputError: if there is no such file, no word in it, or it is compressed.
    """
    if pathlib.Path(path).suffix in _COMPRESSED:
        raise InputError(f"--warm-text: expected plain text, found a compressed file: {path}")
    try:
        with pathlib.Path(path).open("rb") as file:
            sentences = list(itertools.islice((line for line in file if line.split()), _SENTENCES))
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"--warm-text: expected a text file, found {error.strerror}: {path}") from None
    if not sentences:
        raise InputError(f"--warm-text: expected a text with words, found none: {path}")
    return TypicalText(sentences, digest)


def warm_up(root: tf.train.Checkpoint, initial: States, sentences: list[bytes], tokenizer: str) -> None:
    """Sets `initial`, variables of `root`, to the state after typical sentences, parted by `tokenizer`.

    These are shared out over streams that carry their states, as in training; after their last sentences the streams'
    states are averaged.
    """
    streams = np.array_split(np.arange(len(sentences)), min(_STREAMS, len(sentences)))
    states = dict(root.initial_states(len(streams)))
    for number in range(len(streams[0])):  # none has more
        batch = [sentences[stream[number]] if number < len(stream) else b"" for stream in streams]
        tokens, lengths = in_graph.split(tf.constant(batch), tokenizer)
        found = root.stream(tokens=tokens, sequence_len=lengths, **states)
        states = {name: found[name] for name in states}
    for variable, state in zip(tf.nest.flatten(initial), tf.nest.flatten(nested(states)), strict=True):
        variable.assign(tf.reduce_mean(state, 0, keepdims=True))
