"""The text to embed as numbered sentences: read once, copied to the journal, and cut into chunks for the model.

With the copy, each chunk knows its number of tokens and the numbers of its lines, for text of any files, archives and
tokenizers. Vectors take hundreds of times as much space as their text, so the copy costs nothing.
"""

import collections
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from elmo_tf.embedder import PIECE_TOKENS, Words
from elmo_tf.files.json_file import MapOf, Object, Whole
from elmo_tf.pipelines.running import do_once, journal, task_progress
from elmo_tf.pipelines.text import corpora, filesystems, sentences

PHASE = "text"
_INDEX_TYPE = np.dtype("<u4")
_ROW_BYTES = 2 * _INDEX_TYPE.itemsize  # of the lengths of a line


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


class KeepText(do_once.DoOnce):
    """`corpora.Task` -> a file in the journal of `folder` with its sentences, one per line, tokens between spaces.

    If lines are sentences, blank and dropped lines are blank lines of the file. A second file has the number of tokens
    and of bytes of each line, so that chunks are cut without reading the text. The result has the number of lines of
    each source.
    """

    phase = PHASE
    schema = Object(
        {
            **do_once.FILES.required,
            "irregular": MapOf(Whole()),
            "lines": MapOf(Whole()),
            "lengths": Whole(),  # rows of the second file, which earlier versions did not write
            "tokens": Whole(),
        }
    )

    def __init__(self, folder: str, settings: sentences.Settings):
        super().__init__(folder)
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings, numbered=True)

    def do(self, task: corpora.Task, progress: task_progress.TaskProgress) -> dict[str, Any]:
        path, index_path = _path(self._journal, task.number), _index_path(self._journal, task.number)
        irregular, lines = collections.Counter(), collections.Counter()
        size = num_lines = num_tokens = 0
        with filesystems.create(path) as file, filesystems.create(index_path) as index:
            for numbered in self._reader.read_numbered(task):
                lengths = list(map(len, numbered.sentences))
                texts = [b" ".join(words) + b"\n" for words in numbered.sentences]
                size += file.write(b"".join(texts))
                index.write(np.array([lengths, list(map(len, texts))], _INDEX_TYPE).T.tobytes())
                num_lines += len(lengths)
                num_tokens += sum(lengths)
                lines[numbered.source] += len(lengths)
                irregular.update(numbered.irregular)
                irregular["long_sentences"] += sum(length > PIECE_TOKENS for length in lengths)
                progress.add(numbered.size, len(lengths), sum(lengths))
        sizes = {path: size, index_path: num_lines * _ROW_BYTES}
        return {"irregular": irregular, "lines": lines, "lengths": num_lines, "tokens": num_tokens, "files": sizes}


def line_lengths(notes: journal.Journal, num_texts: int) -> Iterator[np.ndarray]:
    """Yields the number of tokens of each line, int64, for each of the files that `KeepText` wrote."""
    for index in filesystems.at_once(lambda text: _read_index(notes, text), range(num_texts)):
        yield index[:, 0]


def cut(notes: journal.Journal, num_texts: int, num_chunks: int, num_tokens: int) -> Iterator[Chunk]:
    """Yields chunks of about the same number of tokens.

    Chunk n begins with the first line that has at least `n / num_chunks` of all tokens before it.

    Args:
        notes: the journal that `KeepText` has written to.
        num_texts: its tasks.
        num_chunks: chunks to make; some are empty if there are few lines.
        num_tokens: tokens of all lines, more than 0.
    """
    chunk = Chunk(0, 0, 0, 0, ())
    before = 0
    for text, index in enumerate(filesystems.at_once(lambda text: _read_index(notes, text), range(num_texts))):
        if not len(index):
            continue
        # Of each line, and of the end: the tokens before it in all texts, and its place in this one.
        tokens = before + np.concatenate([[0], np.cumsum(index[:, 0])])
        places = np.concatenate([[0], np.cumsum(index[:, 1])])
        numbers = np.minimum(tokens[:-1] * num_chunks // num_tokens, num_chunks - 1)
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
        before = int(tokens[-1])
    yield chunk
    for number in range(chunk.number + 1, num_chunks):
        yield Chunk(number, chunk.first_line + chunk.lines, 0, 0, ())


def read(notes: journal.Journal, chunk: Chunk) -> list[Words]:
    """Returns the sentences of a chunk."""
    found: list[bytes] = []
    for piece in chunk.pieces:
        found += filesystems.read_range(_path(notes, piece.text), piece.start, piece.end).split(b"\n")[:-1]
    return [line.split() for line in found]


def rules(settings: sentences.Settings) -> dict[str, str]:
    """Returns what happens to irregular text, by the name under which it is counted."""
    return sentences.rules(settings, numbered=True) | {
        "long_sentences": f"embedded in pieces of {PIECE_TOKENS:,} tokens, each without knowing the others"
    }


def lines_by_source(results: list[dict[str, Any]]) -> dict[str, int]:
    """Returns the number of lines of each source, in the order of their numbers."""
    counts = collections.Counter()
    for source, count in itertools.chain.from_iterable(result["lines"].items() for result in results):
        counts[source] += count
    return dict(counts)


def _read_index(notes: journal.Journal, text: int) -> np.ndarray:
    """Returns the numbers of tokens and bytes of each line of a text, int64 `(lines, 2)`."""
    path = _index_path(notes, text)
    content = filesystems.read(path)
    if len(content) % _ROW_BYTES:
        raise filesystems.ReadError(f"cannot read {path}: the lengths of the lines are damaged")
    return np.frombuffer(content, _INDEX_TYPE).reshape(-1, 2).astype(np.int64)


def _index_path(notes: journal.Journal, number: int) -> str:
    return notes.path(f"{PHASE}-{number:05d}.lengths")


def _path(notes: journal.Journal, number: int) -> str:
    return notes.path(f"{PHASE}-{number:05d}.txt")
