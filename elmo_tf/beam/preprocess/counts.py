"""Text to a vocabulary, as Beam transforms."""

import collections
import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from elmo_tf.beam.running import task_progress
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import corpora, filesystems, sentences
from elmo_tf.files.json_file import Count
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary

PHASE = "count"
VOCABULARY = "vocabulary"  # the phase of its result in the journal
_PARTS = 32  # the words are divided into this many, so that no worker has to add the counts of all
_MOST_DISTINCT = 2_000_000  # words that a worker counts before it emits the counts, some 250 MB


class Counted(Result):
    """What was counted for a vocabulary."""

    types: Count  # distinct words
    most: Count  # occurrences of the most frequent word


class _Part(NamedTuple):
    """Words, each of them in this part only."""

    lines: bytes  # of those that are frequent enough, with their counts
    types: int
    most: int


class CountTask(beam.DoFn):
    """`corpora.Task` -> `(part, lines)`: lines of words and their counts in the training split.

    A word is usually in one line per bundle. If each word were an element, passing them through Beam's shuffle would
    take as long as counting them.
    """

    def __init__(self, journal: Journal, settings: sentences.Settings):
        self._journal, self._settings = journal, settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings)

    def start_bundle(self) -> None:
        self._counts = collections.Counter()

    def process(self, task: corpora.Task) -> Iterator[tuple[int, bytes]]:
        progress = task_progress.TaskProgress(self._journal, PHASE)
        for batch in self._reader.read(task):
            words = list(itertools.chain.from_iterable(self._settings.split(batch.sentences)[sentences.TRAIN]))
            self._counts.update(words)
            progress.add(batch.size, len(batch.sentences), len(words))
            if len(self._counts) >= _MOST_DISTINCT:
                yield from _by_part(self._counts)
                self._counts.clear()
        progress.write()

    def finish_bundle(self) -> Iterator:
        yield from map(GlobalWindows.windowed_value, _by_part(self._counts))


@beam.ptransform_fn
def write_vocabulary(
    tasks: beam.PCollection, journal: Journal, settings: sentences.Settings, min_count: int, max_size: int | None
) -> beam.PCollection:
    """`corpora.Task`s -> a vocabulary of the training split in the journal, and the result `Counted`."""
    return (
        tasks
        | "CountWords" >> beam.ParDo(CountTask(journal, settings))
        | "GroupParts" >> beam.GroupByKey()
        | "AddCounts" >> beam.Map(_add, min_count)
        | "ListParts" >> beam.combiners.ToList()
        | "WriteVocabulary" >> beam.Map(_write, journal, max_size)
    )


def path(journal: Journal) -> str:
    """Returns the path of the vocabulary."""
    return journal.path(record_folder.VOCABULARY_FILE)


def _by_part(counts: collections.Counter) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of each part that has words."""
    lines = collections.defaultdict(list)
    for word, count in counts.items():
        lines[zlib.crc32(word) % _PARTS].append(b"%s %d\n" % (word, count))
    for part, found in lines.items():
        yield part, b"".join(found)


def _read(lines: bytes) -> Iterator[tuple[bytes, int]]:
    return ((word, int(count)) for word, count in map(bytes.split, lines.splitlines()))


@beam.typehints.no_annotations
def _add(grouped: tuple[int, Iterable[bytes]], min_count: int) -> _Part:
    totals = collections.Counter()
    for word, count in itertools.chain.from_iterable(map(_read, grouped[1])):
        totals[word] += count
    lines = b"".join(b"%s %d\n" % (word, count) for word, count in totals.items() if count >= min_count)
    return _Part(lines, len(totals), max(totals.values()))


@beam.typehints.no_annotations
def _write(parts: list[_Part], journal: Journal, max_size: int | None) -> None:
    counts = itertools.chain.from_iterable(_read(part.lines) for part in parts)
    content = vocabulary.from_counts(counts, max_size=max_size).to_bytes()
    filesystems.write(path(journal), content)
    most = max((part.most for part in parts), default=0)
    types = sum(part.types for part in parts)
    journal.done(VOCABULARY, 0, Counted(files={path(journal): len(content)}, types=types, most=most))
