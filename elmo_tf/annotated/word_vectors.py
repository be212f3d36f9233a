"""Word vectors in text files: GloVe's, and word2vec's, which begin with a line of two numbers."""

import os
import re
from collections.abc import Collection

import numpy as np

from elmo_tf.annotated import numbered_lines


def read_word_vectors(path: str | os.PathLike, words: Collection[str]) -> tuple[list[str], np.ndarray]:
    """Returns those of `words` that a file has, and their vectors, float32 `(words, dim)`.

    A line has a word (some of GloVe's contain spaces) and its numbers; a later line with the same word is ignored.
    """
    found: dict[str, np.ndarray] = {}
    dim = 0
    for line in numbered_lines.lines(path):
        text = line.text.rstrip(" \t")  # word2vec ends lines with a space
        if line.number == 1 and re.fullmatch(r"\d+ \d+", text):
            continue
        dim = dim or text.count(" ")
        word, *numbers = text.rsplit(" ", dim)
        expected = f"a word and {dim or 'some'} numbers"
        if not word or not numbers or len(numbers) < dim:
            raise line.wrong(expected, text)
        if word in found or word not in words:
            continue
        try:
            found[word] = np.array(numbers, np.float32)
        except ValueError:
            raise line.wrong(expected, text) from None
    numbered_lines.require_some(found, path, "word of the data")
    return list(found), np.stack(list(found.values()))
