"""Word vectors in text files: GloVe's, and word2vec's, which begin with a line of two numbers."""

import os
from collections.abc import Collection

import numpy as np

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError


def read_word_vectors(path: str | os.PathLike, words: Collection[str] | None = None) -> tuple[list[str], np.ndarray]:
    """Returns the words and the float32 `(words, dim)` vectors of a text file with a word and its numbers per line.

    A word may contain spaces, as some of GloVe's do. Of a word that occurs twice the first vector counts.

    Args:
        path: the file.
        words: those to keep; None: all.

    Raises:
        InputError: naming the line that has no vector or one of another length; or if no word is left.
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
        if word in found or (words is not None and word not in words):
            continue
        try:
            found[word] = np.array(numbers, np.float32)
        except ValueError:
            raise _wrong(line, dim) from None
    numbered_lines.require_some(found, path, "word" if words is None else "word of the data")
    return list(found), np.stack(list(found.values()))


def _wrong(line: Line, dim: int) -> InputError:
    return line.wrong(f"a word and {dim or 'some'} numbers", line.text.rstrip())


def _is_header(line: str) -> bool:
    fields = line.split(" ")
    return len(fields) == 2 and all(field.isdecimal() for field in fields)


def _numbers_at_end(line: str) -> int:
    """Returns how many numbers stand at the end of a line, behind its first field."""
    count = 0
    for field in reversed(line.split(" ")[1:]):
        if not _is_number(field):
            break
        count += 1
    return count


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
