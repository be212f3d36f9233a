"""Words to a vocabulary: counted bundle by bundle, added part by part."""

import collections
import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from elmo_tf.beam import failures
from elmo_tf.beam.progress import TaskProgress
from elmo_tf.corpus import corpora, sentences
from elmo_tf.errors import InputError
from elmo_tf.text import vocabulary

_PARTS = 32  # partitions of the words, so that no worker adds up all counts
_MAX_DISTINCT = 2_000_000  # words that a worker counts before it emits the counts, some 250 MB


class Counted(NamedTuple):
    """The vocabulary file's content, passed to the tasks as a side input."""

    content: bytes  # of its file
    types: int | None = None  # distinct words; None if they were not counted
    max_count: int = 0  # occurrences of the most frequent word, special tokens excluded


class _Part(NamedTuple):
    """One partition of the words."""

    lines: bytes  # of those that are frequent enough, with their counts
    types: int
    max_count: int


class _CountWords(beam.DoFn):
    """Counts the words of a bundle; emits `(part, lines)`: lines of words and counts.

    With one element per word, Beam's shuffle would take as long as the counting.
    """

    def start_bundle(self) -> None:
        self._counts: collections.Counter[bytes] = collections.Counter()

    def count(self, words: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Adds words; yields the counts if they outgrow memory."""
        self._counts.update(words)
        if len(self._counts) >= _MAX_DISTINCT:
            yield from self._emit()

    def finish_bundle(self) -> Iterator[Any]:
        yield from map(GlobalWindows.windowed_value, self._emit())

    def _emit(self) -> Iterator[tuple[int, bytes]]:
        lines = collections.defaultdict(list)
        for word, count in self._counts.items():
            lines[zlib.crc32(word) % _PARTS].append(b"%s %d\n" % (word, count))
        self._counts.clear()
        for part, counted in lines.items():
            yield part, b"".join(counted)


@dataclasses.dataclass(eq=False)
class CountTask(failures.TaskFn, _CountWords):
    """`corpora.Task` -> `(part, lines)` of the words in the training split."""

    settings: sentences.Settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self.settings)

    def process_task(self, task: corpora.Task) -> Iterator[tuple[int, bytes]]:
        progress = TaskProgress(self.folder, "counting")
        for batch in self._reader.read(task):
            words = list(itertools.chain.from_iterable(self.settings.split(batch.sentences)[sentences.TRAIN]))
            yield from self.count(words)
            progress.add(batch.size, len(batch.sentences), len(words))
        progress.write()


class CountSentence(_CountWords):
    """Tokens of a sentence -> `(part, lines)`."""

    @beam.typehints.no_annotations
    def process(self, words: list[bytes]) -> Iterator[tuple[int, bytes]]:
        yield from self.count(words)


@beam.ptransform_fn
def add_up(lines: beam.PCollection, min_count: int, max_size: int | None) -> beam.PCollection:
    """`(part, lines)` -> one `Counted`."""
    return (
        lines
        | "GroupParts" >> beam.GroupByKey()
        | "AddCounts" >> beam.Map(_add, min_count)
        | "ListParts" >> beam.combiners.ToList()
        | "MakeVocabulary" >> beam.Map(_make, min_count, max_size)
    )


def _read(lines: bytes) -> Iterator[tuple[bytes, int]]:
    return ((word, int(count)) for word, count in map(bytes.split, lines.splitlines()))


@beam.typehints.no_annotations
def _add(grouped: tuple[int, Iterable[bytes]], min_count: int) -> _Part:
    totals: collections.Counter = collections.Counter()
    for word, count in itertools.chain.from_iterable(map(_read, grouped[1])):
        totals[word] += count
    lines = b"".join(b"%s %d\n" % (word, count) for word, count in totals.items() if count >= min_count)
    ordinary = (count for word, count in totals.items() if word not in vocabulary.SPECIAL_TOKENS)
    return _Part(lines, len(totals), max(ordinary, default=0))


@beam.typehints.no_annotations
def _make(parts: list[_Part], min_count: int, max_size: int | None) -> Counted:
    counts = itertools.chain.from_iterable(_read(part.lines) for part in parts)
    content = vocabulary.from_counts(counts, max_size=max_size).to_bytes()
    types, max_count = sum(part.types for part in parts), max((part.max_count for part in parts), default=0)
    return Counted(content, types, max_count)


def check(counted: Counted, min_count: int, parameter: str = "input") -> None:
    """Raises `InputError` if no word was frequent enough, or about `parameter` if only special tokens were counted."""
    if counted.types and counted.content.count(b"\n") == len(vocabulary.SPECIAL_TOKENS):
        if not counted.max_count:
            raise InputError(parameter, "contains no words but <S>, </S> and <UNK>")
        expected = f"at most {counted.max_count}, the count of the most frequent word"
        raise InputError("min_count", expected, min_count)
