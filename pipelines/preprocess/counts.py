"""Text to word counts, as Beam transforms."""

import collections
import itertools
import zlib
from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from pipelines.running import journal, task_progress
from pipelines.text import corpora, filesystems, sentences

PHASE = "count"
_PARTS = 32  # files of counts, so that no worker has to hold all words
_MOST_DISTINCT = 2_000_000  # words that a worker counts before it emits the counts, some 250 MB
_NO_WORD = (b"", 0)  # in every part, so that each is written even if no word belongs to it
_CHECKSUM = b"%08x\n"  # the last line of a part: CRC-32 of the lines before

Counts = list[tuple[bytes, int]]  # words, each once, and how often they occur


class CountTask(beam.DoFn):
    """`corpora.Task` -> `(word, count)` of the training split, each word usually once per bundle.

    Emitting the counts of each block would put every word of every block into the shuffle.
    """

    def __init__(self, folder: str, settings: sentences.Settings):
        self._journal = journal.Journal(folder)
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings)

    def start_bundle(self) -> None:
        self._counts = collections.Counter()

    def process(self, task: corpora.Task) -> Iterator[tuple[bytes, int]]:
        progress = task_progress.TaskProgress(self._journal, PHASE, task.number)
        for batch in self._reader.read(task):
            words = list(itertools.chain.from_iterable(batch.sentences[sentences.TRAIN]))
            self._counts.update(words)
            progress.add(batch.size, sum(map(len, batch.sentences.values())), len(words))
            if len(self._counts) >= _MOST_DISTINCT:
                yield from self._counts.items()
                self._counts.clear()
        progress.write()

    def finish_bundle(self) -> Iterator:
        for pair in self._counts.items():
            yield GlobalWindows.windowed_value(pair)


class WriteCounts(beam.PTransform):
    """Counts the words of the training split, and writes the counts to `_PARTS` files in the journal of `folder`.

    Input: `corpora.Task`s.
    """

    def __init__(self, folder: str, settings: sentences.Settings):
        super().__init__()
        self._folder, self._settings = folder, settings

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        words = (
            tasks
            | "CountWords" >> beam.ParDo(CountTask(self._folder, self._settings))
            | "SumCounts" >> beam.CombinePerKey(sum)
            | "PartitionWords" >> beam.Map(_with_part)
        )
        every_part = tasks.pipeline | "EveryPart" >> beam.Create([(part, _NO_WORD) for part in range(_PARTS)])
        return (
            (words, every_part)
            | "AddEveryPart" >> beam.Flatten()
            | "GroupParts" >> beam.GroupByKey()
            | "WriteParts" >> beam.Map(_write, journal.Journal(self._folder))
        )


def read_counts(folder: str) -> Iterator[Counts]:
    """Yields what `WriteCounts` wrote, file by file, each word once in all.

    Raises:
        filesystems.ReadError: if a file is missing or damaged.
    """
    notes = journal.Journal(folder)
    for part in range(_PARTS):
        path = _path(notes, part)
        content = filesystems.read(path) if filesystems.exists(path) else b""
        lines = content[: -len(_CHECKSUM % 0)]
        if content != lines + _CHECKSUM % zlib.crc32(lines):
            found = "damaged" if content else "missing"
            raise filesystems.ReadError(f"cannot read {path}: the word counts are {found}")
        yield [(word, int(count)) for word, count in map(bytes.split, lines.splitlines())]


def _with_part(pair: tuple[bytes, int]) -> tuple[int, tuple[bytes, int]]:
    return zlib.crc32(pair[0]) % _PARTS, pair


def _write(grouped: tuple[int, Iterable[tuple[bytes, int]]], notes: journal.Journal) -> None:
    part, pairs = grouped
    lines = b"".join(b"%s %d\n" % pair for pair in pairs if pair[1])
    filesystems.write(_path(notes, part), lines + _CHECKSUM % zlib.crc32(lines))


def _path(notes: journal.Journal, part: int) -> str:
    return notes.path(f"counts-{part:02d}")
