"""Text to word counts, as Beam transforms."""

import collections
import itertools
import zlib
from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from elmo_tf.pipelines.running import journal, task_progress
from elmo_tf.pipelines.text import corpora, filesystems, sentences

PHASE = "count"
_PARTS = 32  # files of counts, so that no worker has to hold all words
_MOST_DISTINCT = 2_000_000  # words that a worker counts before it emits the counts, some 250 MB
_CHECKSUM = b"%08x\n"  # the last line of a part: CRC-32 of the lines before

Counts = list[tuple[bytes, int]]  # words, each once, and how often they occur


class CountTask(beam.DoFn):
    """`corpora.Task` -> `(part, lines)`: for each file of counts lines of words and their counts in the training split.

    A word is usually in one line per bundle. As elements of their own, all words would take as long to pass through
    Beam's shuffle as to count.
    """

    def __init__(self, folder: str, settings: sentences.Settings):
        self._journal = journal.opened(folder)
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings)

    def start_bundle(self) -> None:
        self._counts = collections.Counter()

    def process(self, task: corpora.Task) -> Iterator[tuple[int, bytes]]:
        progress = task_progress.TaskProgress(self._journal, PHASE, task.number)
        for batch in self._reader.read(task):
            words = list(itertools.chain.from_iterable(batch.sentences[sentences.TRAIN]))
            self._counts.update(words)
            progress.add(batch.size, sum(map(len, batch.sentences.values())), len(words))
            if len(self._counts) >= _MOST_DISTINCT:
                yield from _by_part(self._counts)
                self._counts.clear()
        progress.write()

    def finish_bundle(self) -> Iterator:
        yield from map(GlobalWindows.windowed_value, _by_part(self._counts))


class WriteCounts(beam.PTransform):
    """Counts the words of the training split, and writes the counts to `_PARTS` files in the journal of `folder`.

    Input: `corpora.Task`s.
    """

    def __init__(self, folder: str, settings: sentences.Settings):
        super().__init__()
        self._folder, self._settings = folder, settings

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        words = tasks | "CountWords" >> beam.ParDo(CountTask(self._folder, self._settings))
        # Each is written even if no word belongs to it.
        every_part = tasks.pipeline | "EveryPart" >> beam.Create([(part, b"") for part in range(_PARTS)])
        return (
            (words, every_part)
            | "AddEveryPart" >> beam.Flatten()
            | "GroupParts" >> beam.GroupByKey()
            | "WriteParts" >> beam.Map(_write, journal.opened(self._folder))
        )


def read_counts(folder: str) -> Iterator[Counts]:
    """Yields what `WriteCounts` wrote, file by file, each word once in all.

    Raises:
        filesystems.ReadError: if a file is missing or damaged.
    """
    notes = journal.opened(folder)
    for part in range(_PARTS):
        path = _path(notes, part)
        content = filesystems.read(path) if filesystems.exists(path) else b""
        lines = content[: -len(_CHECKSUM % 0)]
        if content != lines + _CHECKSUM % zlib.crc32(lines):
            found = "damaged" if content else "missing"
            raise filesystems.ReadError(f"cannot read {path}: the word counts are {found}")
        yield _read_lines(lines)


def _by_part(counts: collections.Counter) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of each part that has words."""
    lines = collections.defaultdict(list)
    for word, count in counts.items():
        lines[zlib.crc32(word) % _PARTS].append(b"%s %d\n" % (word, count))
    for part, found in lines.items():
        yield part, b"".join(found)


def _read_lines(lines: bytes) -> Counts:
    return [(word, int(count)) for word, count in map(bytes.split, lines.splitlines())]


def _write(grouped: tuple[int, Iterable[bytes]], notes: journal.Journal) -> None:
    part, found = grouped
    totals = collections.Counter()
    for word, count in itertools.chain.from_iterable(map(_read_lines, found)):
        totals[word] += count
    lines = b"".join(b"%s %d\n" % pair for pair in totals.items())
    filesystems.write(_path(notes, part), lines + _CHECKSUM % zlib.crc32(lines))


def _path(notes: journal.Journal, part: int) -> str:
    return notes.path(f"counts-{part:02d}")
