"""The text to embed as numbered sentences: read once, copied to the journal, and cut into chunks for the model.

With the copy, each chunk knows its number of tokens and the numbers of its lines, for text of any files, archives and
tokenizers. Vectors take hundreds of times as much space as their text, so the copy costs nothing.
"""

import collections
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from elmo_tf.files.json_file import MapOf, Object, Whole
from elmo_tf.savedmodel.embedding import PIECE_TOKENS, Words
from pipelines.running import do_once, journal, task_progress
from pipelines.text import corpora, filesystems, sentences

PHASE = "text"


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

    If lines are sentences, blank and dropped lines are blank lines of the file. The result has the number of lines of
    each source.
    """

    phase = PHASE
    schema = Object({**do_once.FILES.required, "irregular": MapOf(Whole()), "lines": MapOf(Whole()), "tokens": Whole()})

    def __init__(self, folder: str, settings: sentences.Settings):
        super().__init__(folder)
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings, numbered=True)

    def do(self, task: corpora.Task, progress: task_progress.TaskProgress) -> dict[str, Any]:
        path = _path(self._journal, task.number)
        irregular, lines = collections.Counter(), collections.Counter()
        size = num_tokens = 0
        with filesystems.create(path) as file:
            for numbered in self._reader.read_numbered(task):
                lengths = list(map(len, numbered.sentences))
                size += file.write(b"".join([b" ".join(words) + b"\n" for words in numbered.sentences]))
                num_tokens += sum(lengths)
                lines[numbered.source] += len(lengths)
                irregular.update(numbered.irregular)
                irregular["long_sentences"] += sum(length > PIECE_TOKENS for length in lengths)
                progress.add(numbered.size, len(lengths), sum(lengths))
        return {"irregular": irregular, "lines": lines, "tokens": num_tokens, "files": {path: size}}


def cut(notes: journal.Journal, num_texts: int, num_chunks: int, num_tokens: int) -> Iterator[tuple[Chunk, list[int]]]:
    """Yields chunks of about the same number of tokens, each with the number of tokens of every line.

    Args:
        notes: the journal that `KeepText` has written to.
        num_texts: its tasks.
        num_chunks: chunks to make; some are empty if there are few lines.
        num_tokens: tokens of all lines, more than 0.
    """
    number = first_line = before = 0
    pieces: list[Piece] = []
    lengths: list[int] = []
    for text in range(num_texts):
        start = end = 0
        with contextlib.closing(filesystems.open_file(_path(notes, text))) as file:
            for line in file:
                while number < num_chunks - 1 and before * num_chunks >= num_tokens * (number + 1):
                    pieces += [Piece(text, start, end)] * (end > start)
                    yield Chunk(number, first_line, len(lengths), sum(lengths), tuple(pieces)), lengths
                    number, first_line, start = number + 1, first_line + len(lengths), end
                    pieces, lengths = [], []
                lengths.append(len(line.split()))
                before += lengths[-1]
                end += len(line)
        pieces += [Piece(text, start, end)] * (end > start)
    for last in range(number, num_chunks):
        yield Chunk(last, first_line, len(lengths), sum(lengths), tuple(pieces)), lengths
        pieces, lengths, first_line = [], [], first_line + len(lengths)


def read(notes: journal.Journal, chunk: Chunk) -> list[Words]:
    """Returns the sentences of a chunk."""
    found: list[bytes] = []
    for piece in chunk.pieces:
        with contextlib.closing(filesystems.open_file(_path(notes, piece.text))) as file:
            file.seek(piece.start)
            found += file.read(piece.end - piece.start).split(b"\n")[:-1]
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


def _path(notes: journal.Journal, number: int) -> str:
    return notes.path(f"{PHASE}-{number:05d}.txt")
