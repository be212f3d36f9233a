"""The text to embed as numbered sentences: read once, copied to the journal, and cut into chunks for the model.

With the copy, each chunk knows its number of tokens and the numbers of its lines, for any files and tokenizers. The
copy costs little, because computing vectors takes far longer than copying text.
"""

import collections
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elmo_tf.beam.running import do_once, task_progress
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import corpora, filesystems, sentences
from elmo_tf.embedder import PIECE_TOKENS, Words
from elmo_tf.files.json_file import Count

PHASE = "text"
_INDEX_TYPE = np.dtype("<u4")


class Piece(NamedTuple):
    """Whole lines of one of the files that `KeepText` writes."""

    text: int  # the number of the task that wrote it
    start: int
    end: int  # bytes


class Chunk(NamedTuple):
    """Consecutive lines that are embedded and written together."""

    number: int
    first_line: int
    lines: int
    tokens: int
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Bytes of text in it."""
        return sum(piece.end - piece.start for piece in self.pieces)


class Kept(Result):
    """The stored text of a task."""

    lines: dict[str, Count]  # by source
    tokens: Count


class KeepText(do_once.DoOnce):
    """`corpora.Task` -> a file in the journal with its sentences, one per line, tokens separated by spaces.

    A line begins with its identifier and a tab, if there are identifiers. If lines are sentences, blank and dropped
    lines are blank in the file. A second file has the number of tokens and of bytes of each line, so that chunks
    are cut without reading the text.
    """

    phase = PHASE
    kind = Kept

    def __init__(self, journal: Journal, settings: sentences.Settings):
        super().__init__(journal)
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings, numbered=True)

    def do(self, task: corpora.Task, progress: task_progress.TaskProgress) -> Kept:
        path, index_path = _path(self._journal, task.number), _index_path(self._journal, task.number)
        irregular, lines = collections.Counter(), collections.Counter()
        size = index_size = num_tokens = 0
        with filesystems.create(path) as file, filesystems.create(index_path) as index:
            for numbered in self._reader.read(task):
                has_ids, found = self._settings.has_ids, numbered.sentences
                names = [words.pop(0) + b"\t" if has_ids else b"" for words in found]
                lengths = list(map(len, found))
                texts = [name + b" ".join(words) + b"\n" for name, words in zip(names, found, strict=True)]
                size += file.write(b"".join(texts))
                index_size += index.write(np.array([lengths, list(map(len, texts))], _INDEX_TYPE).T.tobytes())
                num_tokens += sum(lengths)
                lines[numbered.source] += len(lengths)
                irregular.update(numbered.irregular)
                irregular["long_sentences"] += sum(length > PIECE_TOKENS for length in lengths)
                progress.add(numbered.size, len(lengths), sum(lengths))
        return Kept(files={path: size, index_path: index_size}, irregular=irregular, lines=lines, tokens=num_tokens)


def named_lengths(journal: Journal, num_texts: int, has_ids: bool) -> Iterator[tuple[list[bytes], list[int]]]:
    """Yields names and token counts of the lines of each file of `KeepText`; a name is an identifier or a number."""
    first = 0
    for text, index in enumerate(_indexes(journal, num_texts)):
        names = [b"%d" % (first + place) for place in range(len(index))]
        if has_ids:
            names = [line.partition(b"\t")[0] for line in filesystems.read(_path(journal, text)).split(b"\n")[:-1]]
        yield names, index[:, 0].tolist()
        first += len(index)


def cut(journal: Journal, num_texts: int, num_chunks: int, size: int, line_size: int = 0) -> Iterator[Chunk]:
    """Yields chunks of about the same size: the number of tokens, and `line_size` for each line.

    Chunk n begins with the first line that has at least `n / num_chunks` of the whole `size` before it. Some are empty
    if there are few lines.
    """
    chunk = Chunk(0, 0, 0, 0, ())
    before = 0
    for text, index in enumerate(_indexes(journal, num_texts)):
        if not len(index):
            continue
        # For each line and for the end: the tokens before it in this text, its place, and the size of all before it.
        tokens, places = (np.concatenate([[0], np.cumsum(column)]) for column in index.T)
        sizes = before + tokens + line_size * np.arange(len(tokens))
        numbers = np.minimum(sizes[:-1] * num_chunks // size, num_chunks - 1)
        starts = np.flatnonzero(np.diff(numbers, prepend=chunk.number)).tolist()
        for start, end in itertools.pairwise(sorted({0, *starts, len(index)})):
            for number in range(chunk.number + 1, int(numbers[start]) + 1):
                yield chunk
                chunk = Chunk(number, chunk.first_line + chunk.lines, 0, 0, ())
            chunk = chunk._replace(
                lines=chunk.lines + end - start,
                tokens=chunk.tokens + int(tokens[end] - tokens[start]),
                pieces=(*chunk.pieces, Piece(text, int(places[start]), int(places[end]))),
            )
        before = int(sizes[-1])
    yield chunk
    for number in range(chunk.number + 1, num_chunks):
        yield Chunk(number, chunk.first_line + chunk.lines, 0, 0, ())


def read(journal: Journal, chunk: Chunk) -> tuple[list[bytes], list[Words]]:
    """Returns the identifiers of the lines of a chunk, empty if there are none, and the sentences."""
    found: list[bytes] = []
    for piece in chunk.pieces:
        found += filesystems.read_range(_path(journal, piece.text), piece.start, piece.end).split(b"\n")[:-1]
    lines = [line.rpartition(b"\t") for line in found]
    return [name for name, _, _ in lines], [words.split() for _, _, words in lines]


def rules(settings: sentences.Settings) -> dict[str, str]:
    """Returns what happens to irregular text, by the name under which it is counted."""
    return sentences.rules(settings, numbered=True) | {
        "long_sentences": f"embedded in pieces of {PIECE_TOKENS:,} tokens, each without knowing the others"
    }


def _indexes(journal: Journal, num_texts: int) -> Iterator[np.ndarray]:
    """Yields the numbers of tokens and bytes of each line, int64 `(lines, 2)`, for each text."""
    for content in filesystems.at_once(filesystems.read, (_index_path(journal, text) for text in range(num_texts))):
        yield np.frombuffer(content, _INDEX_TYPE).reshape(-1, 2).astype(np.int64)


def _index_path(journal: Journal, number: int) -> str:
    return journal.path(f"{PHASE}-{number:05d}.lengths")


def _path(journal: Journal, number: int) -> str:
    return journal.path(f"{PHASE}-{number:05d}.txt")
