"""Word vectors in text files: GloVe's; word2vec's, which begin with a line of two numbers; Senna's two files."""

import itertools
import os
import pathlib
import re
import statistics
from collections.abc import Collection, Iterator

import numpy as np

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import OddLines
from elmo_tf.errors import InputError

_HEADER = re.compile(rb"\d+ (\d+)")
_INSPECTED = 100  # lines from which the number of values is detected


def read_word_vectors(
    path: str | os.PathLike, words: Collection[str], strict: bool = False
) -> tuple[list[str], np.ndarray]:
    """Returns the words among `words` that a file has, and their vectors, float32 `(words, dim)`.

    A later line with the same word is ignored; for the rest, see `iterate_word_vectors`.
    """
    vectors: dict[str, np.ndarray] = {}
    for word, vector in iterate_word_vectors(path, words, strict):
        vectors.setdefault(word, vector)
    numbered_lines.require_nonempty(vectors, path, "word of the data")
    return list(vectors), np.stack(list(vectors.values()))


def iterate_word_vectors(
    path: str | os.PathLike, words: Collection[str] | None = None, strict: bool = False
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the words of a file and their vectors, float32 `(dim,)`: those of `words`, or all.

    A line has a word (some of GloVe's contain spaces) and its numbers, separated by spaces or tabs. Odd lines are left
    out with a warning, or errors if `strict`: blank lines, and those without a word, with one that is not UTF-8, with
    a different number of values, or with a value of a wanted word that is not a finite number.
    """
    odd = OddLines(path, strict)
    wanted = None if words is None else {word.encode("utf-8", "replace"): word for word in words}
    lines = ((number, line.replace(b"\t", b" ").rstrip(b" ")) for number, line in _lines(path))
    first = list(itertools.islice(lines, _INSPECTED))
    if first:
        first[0] = first[0][0], first[0][1].removeprefix("\ufeff".encode())
    header = _HEADER.fullmatch(first[0][1]) if first else None
    dim = int(header[1]) if header else statistics.mode([line.count(b" ") for _, line in first if line] or [0])
    for number, line in itertools.chain(first[1:] if header else first, lines):
        form, *numbers = line.rsplit(b" ", dim)
        if problem := _problem(form, numbers, dim):
            odd.add(number, problem)
            continue
        word = form.decode() if wanted is None else wanted.get(form)
        if word is None:
            continue
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.array(np.nan)
        if np.isfinite(vector).all():
            yield word, vector
        else:
            odd.add(number, "a value that is not a finite number")
    odd.report()


def _lines(path: str | os.PathLike) -> Iterator[tuple[int, bytes]]:
    """Yields the number of each line and the line; for Senna's `embeddings.txt`, after its word from `words.lst`.

    Senna keeps `words.lst` in the folder `hash` beside the folder of the vectors; it may also be in the same folder.
    """
    path = pathlib.Path(path)
    lists = [path.with_name("words.lst"), path.parent.parent / "hash" / "words.lst"]
    words = next((file for file in lists if file.is_file()), None) if path.name == "embeddings.txt" else None
    if words is None:
        yield from numbered_lines.encoded_lines(path)
        return
    pairs = itertools.zip_longest(numbered_lines.encoded_lines(words), numbered_lines.encoded_lines(path))
    for word, line in pairs:
        if word is None or line is None:
            raise InputError(str(path), f"its number of lines differs from that of {words}")
        yield line[0], word[1] + b" " + line[1]


def _problem(form: bytes, numbers: list[bytes], dim: int) -> str:
    """Returns what is wrong with a line, apart from its values; "" if nothing is."""
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
