"""Text to word counts, as Beam transforms."""

import collections
import itertools
from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from pipelines import corpora, sentences

PROBLEMS = "problems"  # tag of what makes the corpus unusable: (path, line, message)
_MOST_DISTINCT = 2_000_000  # words that a worker counts before it passes the counts on, some 250 MB


class ReadBlocks(beam.DoFn):
    """`corpora.Task` -> `corpora.Block`; of a file that cannot be used a problem instead of the rest."""

    @beam.typehints.no_annotations
    def process(self, task: corpora.Task) -> Iterator[corpora.Block | beam.pvalue.TaggedOutput]:
        try:
            for part in task.slices:
                yield from corpora.read_blocks(part)
        except corpora.CorpusError as error:
            yield beam.pvalue.TaggedOutput(PROBLEMS, (error.path, error.line, str(error)))


class CountBlocks(beam.DoFn):
    """`corpora.Block` -> `(word, count)` of the training split, each word once a bundle as a rule.

    Passing on a block's counts at once would put every word of every block into the shuffle.
    """

    def __init__(self, settings: sentences.Settings):
        self._settings = settings

    def setup(self) -> None:
        self._tokenize = sentences.make_tokenizer(self._settings.tokenizer)

    def start_bundle(self) -> None:
        self._counts = collections.Counter()

    def process(self, block: corpora.Block) -> Iterable[tuple[bytes, int]]:
        found, _ = self._settings.sort(block, self._tokenize)
        self._counts.update(itertools.chain.from_iterable(found[sentences.TRAIN]))
        if len(self._counts) < _MOST_DISTINCT:
            return []
        full, self._counts = self._counts, collections.Counter()
        return full.items()

    def finish_bundle(self) -> Iterator:
        for pair in self._counts.items():
            yield GlobalWindows.windowed_value(pair)


class CountTokens(beam.PTransform):
    """Counts the words of the training split.

    Input: `corpora.Task`s. Output: `(word, count)`, words as bytes, and the problems met, `(path, line, message)`.
    """

    def __init__(self, settings: sentences.Settings):
        super().__init__()
        self._settings = settings

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> tuple[beam.PCollection, beam.PCollection]:
        blocks = tasks | "ReadBlocks" >> beam.ParDo(ReadBlocks()).with_outputs(PROBLEMS, main="blocks")
        counts = blocks.blocks | "CountBlocks" >> beam.ParDo(CountBlocks(self._settings))
        return counts | "SumCounts" >> beam.CombinePerKey(sum), blocks[PROBLEMS]


def write_counts(pairs: Iterable[tuple[bytes, int]], path: str) -> None:
    """Writes words and counts to a file, one pair a line; a word holds no white space."""
    with open(path, "wb") as file:
        file.writelines(b"%s %d\n" % pair for pair in pairs)


def read_counts(path: str) -> list[tuple[bytes, int]]:
    """Returns what `write_counts` wrote."""
    with open(path, "rb") as file:
        return [(word, int(count)) for word, count in map(bytes.split, file)]
