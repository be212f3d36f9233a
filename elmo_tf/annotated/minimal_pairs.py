"""Minimal pairs of BLiMP's kind: lines of JSON, each with an acceptable and an unacceptable sentence."""

import os

import msgspec

from elmo_tf.annotated import numbered_lines
from elmo_tf.files import json_file


class MinimalPair(msgspec.Struct, frozen=True):
    """An acceptable sentence, an unacceptable sentence, and their paradigm."""

    sentence_good: str
    sentence_bad: str
    UID: str
    linguistics_term: str


def read_minimal_pairs(path: str | os.PathLike) -> list[MinimalPair]:
    """Returns the pairs of a file, plain or compressed (.gz, .bz2, .xz); other keys than those of a pair are ignored.

    Reference:
        Warstadt et al. 2020, "BLiMP: The Benchmark of Linguistic Minimal Pairs for English".
    """
    pairs = [json_file.parse(line.text, MinimalPair, line.location) for line in numbered_lines.filled_lines(path)]
    return numbered_lines.require_some(pairs, path, "pair of sentences")
