"""Text to word counts, as Beam transforms."""

import collections
import itertools
import zlib
from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from pipelines.running import journal
from pipelines.text import corpora, filesystems, sentences

PHASE = "count"
_PARTS = 32  # files of counts: no worker has to hold all words
_MOST_DISTINCT = 2_000_000  # words that a worker counts before it passes the counts on, some 250 MB

Counts = list[tuple[bytes, int]]  # words, each once, and how often they occur


class CountTask(beam.DoFn):
    """`corpora.Task` -> `(word, count)` of the training split, each word once a bundle as a rule.

    Passing on a block's counts at once would put every word of every block into the shuffle.
    """

    def __init__(self, folder: str, settings: sentences.Settings):
        self._journal = journal.Journal(folder)
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings)

    def start_bundle(self) -> None:
        self._counts = collections.Counter()

    def process(self, task: corpora.Task) -> Iterator[tuple[bytes, int]]:
        beat = journal.Beat(self._journal, PHASE, task.number)
        for batch in self._reader.read(task):
            words = list(itertools.chain.from_iterable(batch.sentences[sentences.TRAIN]))
            self._counts.update(words)
            beat.add(batch.size, sum(map(len, batch.sentences.values())), len(words))
            if len(self._counts) >= _MOST_DISTINCT:
                yield from self._counts.items()
                self._counts.clear()
        beat.tell()

    def finish_bundle(self) -> Iterator:
        for pair in self._counts.items():
            yield GlobalWindows.windowed_value(pair)


class WriteCounts(beam.PTransform):
    """Counts the words of the training split, and writes the counts to `_PARTS` files among the notes of `folder`.

    Input: `corpora.Task`s.
    """

    def __init__(self, folder: str, settings: sentences.Settings):
        super().__init__()
        self._folder, self._settings = folder, settings

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        return (
            tasks
            | "CountWords" >> beam.ParDo(CountTask(self._folder, self._settings))
            | "SumCounts" >> beam.CombinePerKey(sum)
            | "PartWords" >> beam.Map(_with_part)
            | "GroupParts" >> beam.GroupByKey()
            | "WriteParts" >> beam.Map(_write, journal.Journal(self._folder))
        )


def read_counts(folder: str) -> Iterator[Counts]:
    """Yields what `WriteCounts` wrote, file by file, each word once in all."""
    for part in range(_PARTS):
        path = _path(journal.Journal(folder), part)
        if filesystems.exists(path):
            yield [(word, int(count)) for word, count in map(bytes.split, filesystems.read(path).splitlines())]


def _with_part(pair: tuple[bytes, int]) -> tuple[int, tuple[bytes, int]]:
    return zlib.crc32(pair[0]) % _PARTS, pair


def _write(grouped: tuple[int, Iterable[tuple[bytes, int]]], notes: journal.Journal) -> None:
    part, pairs = grouped
    filesystems.write(_path(notes, part), b"".join(b"%s %d\n" % pair for pair in pairs))


def _path(notes: journal.Journal, part: int) -> str:
    return notes.path(f"counts-{part:02d}")
