"""Word vectors in text files: GloVe's, and word2vec's, which begin with a line of two numbers."""

import itertools
import os
import re
from collections.abc import Collection

import numpy as np

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError


def read_word_vectors(path: str | os.PathLike, words: Collection[str]) -> tuple[list[str], np.ndarray]:
    """Returns which of `words` a text file has, with a word and its numbers per line, and float32 `(words, dim)`.

    A word may contain spaces, as some of GloVe's do. Of a word that occurs twice the first vector counts.
    """
    found: dict[str, np.ndarray] = {}
    dim = 0
    for line in numbered_lines.lines(path):
        text = line.text.rstrip(" \t")  # word2vec ends lines with a space
        if line.number == 1 and _is_header(text):
            continue
        dim = dim or _numbers_at_end(text)
        word, *numbers = text.rsplit(" ", dim) if dim else [text]
        # One number more would be part of the word.
        if not numbers or len(numbers) < dim or not word or (" " in word and _is_number(word.rpartition(" ")[2])):
            raise _wrong(line, dim)
        if word in found or word not in words:
            continue
        try:
            found[word] = np.array(numbers, np.float32)
        except ValueError:
            raise _wrong(line, dim) from None
    numbered_lines.require_some(found, path, "word of the data")
    return list(found), np.stack(list(found.values()))


def _wrong(line: Line, dim: int) -> InputError:
    return line.wrong(f"a word and {dim or 'some'} numbers", line.text.rstrip())


def _is_header(line: str) -> bool:
    return re.fullmatch(r"\d+ \d+", line) is not None


def _numbers_at_end(line: str) -> int:
    """Returns how many numbers stand at the end of a line, behind its first field."""
    return len(list(itertools.takewhile(_is_number, reversed(line.split(" ")[1:]))))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
