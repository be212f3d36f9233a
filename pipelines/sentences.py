"""The corpus as sentences: how text is split into tokens, and which sentences are held out."""

import collections
import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from elmo_tf.progress import quiet_stderr
from pipelines import corpora, lines, reading

TRAIN, HELDOUT = "train", "heldout"  # the names of the two splits

# What a line may be: a sentence, a paragraph of sentences, or part of a paragraph that ends where a blank line follows.
LINES = (SENTENCE, PARAGRAPH, PART) = ("sentence", "paragraph", "part")

Words = list[bytes]  # the tokens of one sentence


class Settings(NamedTuple):
    """What turns text into sentences."""

    tokenizer: str  # a key of TOKENIZERS
    line: str  # what a line of the text is: one of LINES
    strict: bool  # whether irregular text is an error
    seed: int  # decides which sentences are held out
    heldout_fraction: float | None  # of the distinct sentences; None: none is held out

    def split(self, words: Words) -> str:
        """Returns the split that a sentence belongs to; it depends on its words and the seed alone."""
        if self.heldout_fraction is None:
            return TRAIN
        digest = hashlib.blake2b(b" ".join(words), digest_size=8, key=self.seed.to_bytes(8, "little")).digest()
        return HELDOUT if int.from_bytes(digest, "little") < self.heldout_fraction * 2**64 else TRAIN


class Batch(NamedTuple):
    """The sentences of one block of text."""

    sentences: dict[str, list[Words]]  # by split, in the text's order; none is empty
    irregular: collections.Counter  # see `lines.RULES`
    size: int  # bytes of text


class Reader:
    """Reads tasks as sentences. Make it where it is used: the tokenizer may need TensorFlow."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._cleaner = lines.Cleaner(settings.line == PART, settings.strict, spaced=settings.tokenizer == "whitespace")
        self._tokenize = TOKENIZERS[settings.tokenizer](settings.line != SENTENCE)

    def read(self, task: corpora.Task) -> Iterator[Batch]:
        """Yields the sentences of a task. Raises `reading.CorpusError`."""
        for part in task.slices:
            for block in reading.read_blocks(part, self._settings.line == PART):
                text = self._cleaner.clean(block, part.file)
                found: dict[str, list[Words]] = {TRAIN: [], HELDOUT: []}
                for parted in self._tokenize(text.lines):
                    words = self._cleaner.shorten(parted, block, part.file, text.irregular)
                    if words:
                        found[self._settings.split(words)].append(words)
                yield Batch(found, text.irregular, len(block.data))


def _whitespace(breaking: bool) -> Callable[[list[bytes]], list[Words]]:
    del breaking  # a sentence a line: text whose tokens are apart has its sentences apart as well
    # Of bytes, `split` knows just the six ASCII white space characters, as tf.strings.split does.
    return lambda text: [line.split() for line in text]


def _unicode(breaking: bool) -> Callable[[list[bytes]], list[Words]]:
    with quiet_stderr():  # as long as TensorFlow is loaded and looks for devices
        from elmo_tf.data import raw_text  # noqa: PLC0415 - seconds and TensorFlow, for those who ask for it

        raw_text.tokenize([""])

    def tokenize(text: list[bytes]) -> list[Words]:
        if not text:
            return []
        sentences = raw_text.break_sentences(text) if breaking else text
        ragged = raw_text.tokenize(sentences)
        words = ragged.flat_values.numpy().tolist()
        return [words[start:end] for start, end in itertools.pairwise(ragged.row_splits.numpy().tolist())]

    return tokenize


TOKENIZERS: dict[str, Callable[[bool], Callable[[list[bytes]], list[Words]]]] = {
    "whitespace": _whitespace,
    "unicode": _unicode,
}
