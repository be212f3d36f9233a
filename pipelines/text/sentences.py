"""The corpus as sentences: how text is split into tokens, and which sentences are held out."""

import collections
import hashlib
import itertools
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from pipelines.text import corpora, lines, reading

TRAIN, HELDOUT = "train", "heldout"  # the names of the two splits

# What a line may be: a sentence, a paragraph of sentences, or part of a paragraph that ends where a blank line follows.
LINES = (SENTENCE, PARAGRAPH, PART) = ("sentence", "paragraph", "part")

MOST_TOKENS = reading.BLOCK_BYTES  # of a line that is a sentence; lines of one block cannot have more

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


def rules(settings: Settings, numbered: bool = False) -> dict[str, str]:
    """Returns what is done with irregular text, by the names in `lines.RULES`; see `Reader`."""
    found = {name: rule.rule for name, rule in lines.RULES.items()}
    if settings.tokenizer == "unicode":
        found["nul_lines"] = "kept; NUL is white space to this tokenizer"
    if settings.line == PART:
        del found["blank_lines"]  # they part paragraphs
    if numbered and settings.line == SENTENCE:
        del found["long_lines"]
        found |= dict.fromkeys(("blank_lines", "invalid_utf8_lines"), "kept as a sentence without tokens")
    return found


class Numbered(NamedTuple):
    """The sentences of one block of text, each whole."""

    source: str  # the file, or the archive with the member's name
    sentences: list[Words]  # see `Reader.read_numbered`
    irregular: collections.Counter  # see `lines.RULES`
    size: int  # bytes of text


class Batch(NamedTuple):
    """The sentences of one block of text."""

    sentences: dict[str, list[Words]]  # by split, in the text's order; none is empty
    irregular: collections.Counter  # see `lines.RULES`
    size: int  # bytes of text


class Reader:
    """Reads tasks as sentences. Make it where it is used: the tokenizer may need TensorFlow."""

    def __init__(self, settings: Settings, numbered: bool = False, refused: Collection[str] = ()):
        """Makes a reader.

        Args:
            settings: what turns text into sentences.
            numbered: whether each line, where lines are sentences, is to be one of the reader's.
            refused: of `lines.RULES`, what is an error even if the settings are not strict.
        """
        self._settings = settings
        self._numbered = numbered and settings.line == SENTENCE
        self._cleaner = lines.Cleaner(
            settings.line == PART,
            settings.strict,
            spaced=settings.tokenizer == "whitespace",
            refused=tuple(refused),
            numbered=self._numbered,
        )
        self._tokenize = TOKENIZERS[settings.tokenizer](settings.line != SENTENCE)

    def read(self, task: corpora.Task) -> Iterator[Batch]:
        """Yields the sentences of a task. Raises `reading.CorpusError`."""
        for part in task.slices:
            for block in reading.read_blocks(part, self._settings.line == PART):
                words, irregular = self._parted(block, part.file)
                found: dict[str, list[Words]] = {TRAIN: [], HELDOUT: []}
                for sentence in filter(None, words):
                    found[self._settings.split(sentence)].append(sentence)
                yield Batch(found, irregular, len(block.data))

    def read_numbered(self, task: corpora.Task) -> Iterator[Numbered]:
        """Yields the sentences of a task in their order.

        Where lines are sentences, each line is one, however long; it has no tokens if it is blank or was dropped. Else
        there are no sentences without tokens.

        Raises:
            reading.CorpusError: also for a line of more than `MOST_TOKENS`, which is to be one sentence.
        """
        for part in task.slices:
            begun: list[Numbered] = []  # the beginning of a line that goes on in the next block
            for block in reading.read_blocks(part, self._settings.line == PART):
                found, irregular = self._parted(block, part.file)
                if not self._numbered:
                    yield Numbered(block.source, list(filter(None, found)), irregular, len(block.data))
                    continue
                if begun and block.begun:
                    found[0] = begun.pop().sentences[0] + found[0]
                    if len(found[0]) > MOST_TOKENS:
                        raise _long_line(block, part.file)
                yield from begun
                begun = [Numbered(block.source, [found.pop()], collections.Counter(), 0)] if block.is_cut else []
                yield Numbered(block.source, found, irregular, len(block.data))
            yield from begun

    def _parted(self, block: reading.Block, file: corpora.TextFile) -> tuple[list[Words], collections.Counter]:
        """Returns the sentences of a block, some perhaps without tokens, and how often each rule was applied."""
        text = self._cleaner.clean(block, file)
        shorten = self._cleaner.shorten
        return [shorten(words, block, file, text.irregular) for words in self._tokenize(text.lines)], text.irregular


def _long_line(block: reading.Block, file: corpora.TextFile) -> reading.CorpusError:
    where = f"line {reading.line_number(file, block, 0):,} of {block.source}"
    return reading.CorpusError(
        f"--input: expected a sentence a line, found more than {MOST_TOKENS:,} tokens on {where}; "
        "--tokenizer unicode --line paragraph breaks running text into sentences"
    )


def _whitespace(breaking: bool) -> Callable[[list[bytes]], list[Words]]:
    del breaking  # a sentence a line: text whose tokens are apart has its sentences apart as well
    # Of bytes, `split` knows just the six ASCII white space characters, as tf.strings.split does.
    return lambda text: [line.split() for line in text]


def _unicode(breaking: bool) -> Callable[[list[bytes]], list[Words]]:
    from elmo_tf.text import raw_text  # noqa: PLC0415 - imports TensorFlow, which takes seconds

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
