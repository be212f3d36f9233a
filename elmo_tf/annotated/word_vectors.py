"""Word vectors in text files, as GloVe's."""

import os

import numpy as np

from elmo_tf.annotated import numbered_lines


def read_word_vectors(path: str | os.PathLike) -> tuple[list[str], np.ndarray]:
    """Returns the words and the float32 `(words, dim)` vectors of a text file with a word and its numbers a line.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line that has no vector or one of another length; or if there is no word.
    """
    words, vectors = [], []
    for number, line in numbered_lines.numbered_lines(path):
        word, *numbers = line.split(" ")
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.zeros(0, np.float32)
        if not len(vector) or (vectors and len(vector) != len(vectors[0])):
            expected = f"a word and {len(vectors[0]) if vectors else 'some'} numbers"
            raise numbered_lines.wrong_line(path, number, expected, line)
        words.append(word)
        vectors.append(vector)
    return numbered_lines.require_some(words, path, "word"), np.stack(vectors)
