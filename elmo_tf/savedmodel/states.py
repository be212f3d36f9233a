"""The LSTM states of a SavedModel: by name, and the initial ones of every sentence."""

import hashlib
import itertools
import os
import pathlib

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.model.bilm import BiLM
from elmo_tf.model.walk import States
from elmo_tf.savedmodel import contract
from elmo_tf.text import in_graph

_STREAMS = 32  # a text is divided into this many; their last states are averaged
_SENTENCES = 1024  # how many of a text's sentences are read
_COMPRESSED = (".bz2", ".gz", ".xz", ".zip", ".zst")


def by_name(states: States) -> dict[str, tf.Tensor]:
    """Returns states by the names of the contract."""
    return dict(zip(contract.states(len(states[0])), tf.nest.flatten(states), strict=True))


def zero(bilm: BiLM) -> States:
    """Returns the states before every sentence as variables of one row, zero."""
    return tf.nest.map_structure(lambda state: tf.Variable(state, trainable=False), bilm.zero_states(1))


def read_typical(warm_text: str | os.PathLike) -> tuple[list[bytes], str]:
    """Returns the first lines of a text file that have words, and its SHA-256; `InputError` if there are none."""
    if pathlib.Path(warm_text).suffix in _COMPRESSED:
        raise InputError(str(warm_text), "plain text", "a compressed file")
    try:
        with pathlib.Path(warm_text).open("rb") as file:
            sentences = list(itertools.islice((line for line in file if line.split()), _SENTENCES))
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(str(warm_text), "a text file", error.strerror) from None
    if not sentences:
        raise InputError(str(warm_text), "a text with words", "none")
    return sentences, digest


def warm_up(root: tf.train.Checkpoint, initial: States, sentences: list[bytes], tokenizer: str) -> None:
    """Sets `initial`, variables of `root`, to the average state after typical sentences, split by `tokenizer`.

    Streams of sentences carry their states, as in training; the average is over the streams' last states. Computed on
    the CPU, whatever devices the machine has.
    """
    streams = np.array_split(np.arange(len(sentences)), min(_STREAMS, len(sentences)))
    with tf.device("CPU:0"):
        states = dict(root.initial_states(len(streams)))
        for number in range(len(streams[0])):  # no stream is longer than the first
            batch = [sentences[stream[number]] if number < len(stream) else b"" for stream in streams]
            tokens, lengths = in_graph.split(tf.constant(batch), tokenizer)
            found = root.stream(tokens=tokens, sequence_len=lengths, **states)
            states = {name: found[name] for name in states}
        for name, variable in by_name(initial).items():
            variable.assign(tf.reduce_mean(states[name], 0, keepdims=True))
