"""Sentences of several lengths for tests of the layer, an empty one and odd words among them."""

import dataclasses

import numpy as np

from tests.helpers import MICRO

SENTENCES = [
    [b"the", b"bank", b"of", b"the", b"river"],
    [b"a", b"", b"bank"],
    [],
    ["naïve".encode(), b"x" * 60, b"<S>"],
]
LENGTHS = [len(sentence) for sentence in SENTENCES]
TOKENS = np.array([sentence + [b""] * (6 - len(sentence)) for sentence in SENTENCES], object)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]
ONE_LAYER = dataclasses.replace(MICRO, lstm=dataclasses.replace(MICRO.lstm, num_layers=1))
LABELS = np.where(MASK, np.arange(6) % 3, 0)
