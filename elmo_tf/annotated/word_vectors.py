"""Word vectors in text files: GloVe's, and word2vec's, which begin with a line of two numbers."""

import collections
import itertools
import os
import re
from collections.abc import Collection

import numpy as np

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.odd_lines import OddLines

_HEADER = re.compile(rb"\d+ (\d+)")
_JUDGED = 100  # lines from which the number of values is found


def read_word_vectors(
    path: str | os.PathLike, words: Collection[str], strict: bool = False
) -> tuple[list[str], np.ndarray]:
    """Returns those of `words` that a file has, and their vectors, float32 `(words, dim)`.

    A line has a word (some of GloVe's contain spaces) and its numbers, between spaces or tabs; a later line with the
    same word is ignored. A line that is blank, has no word, a word that is not UTF-8, another number of values, or a
    value of a wanted word that is not a finite number, is odd: left out with a warning, or an error if `strict`.
    """
    odd = OddLines(path, strict)
    wanted = {word.encode("utf-8", "replace"): word for word in words}
    found: dict[str, np.ndarray] = {}
    lines = ((number, line.replace(b"\t", b" ").rstrip(b" ")) for number, line in numbered_lines.encoded_lines(path))
    first = list(itertools.islice(lines, _JUDGED))
    if first:
        first[0] = first[0][0], first[0][1].removeprefix("\ufeff".encode())
    header = _HEADER.fullmatch(first[0][1]) if first else None
    dim = int(header[1]) if header else _usual([line.count(b" ") for _, line in first if line])
    for number, line in itertools.chain(first[1:] if header else first, lines):
        form, *numbers = line.rsplit(b" ", dim)
        if problem := _problem(form, numbers, dim):
            odd.add(number, problem)
            continue
        word = wanted.get(form)
        if word is None or word in found:
            continue
        vector = _finite(numbers)
        if vector is None:
            odd.add(number, "a value that is not a finite number")
        else:
            found[word] = vector
    odd.report()
    numbered_lines.require_some(found, path, "word of the data")
    return list(found), np.stack(list(found.values()))


def _usual(counts: list[int]) -> int:
    """Returns the most frequent count; 0 if there is none."""
    return collections.Counter(counts).most_common(1)[0][0] if counts else 0


def _problem(form: bytes, numbers: list[bytes], dim: int) -> str:
    """Returns what is wrong with a line but for its values, "" if nothing is."""
    if not form and not numbers:
        return "a blank line"
    if not numbers or len(numbers) < dim:
        return f"not a word and {dim or 'some'} numbers"
    if not form:
        return "no word"
    try:
        form.decode()
    except UnicodeDecodeError:
        return "a word that is not UTF-8"
    return ""


def _finite(numbers: list[bytes]) -> np.ndarray | None:
    try:
        vector = np.array(numbers, np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None
