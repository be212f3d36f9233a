"""The sentences of a corpus: splitting text into tokens, and choosing the sentences to hold out."""

import collections
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from elmo_tf.corpus import corpora, lines, reading
from elmo_tf.errors import InputError, not_utf8
from elmo_tf.files.pipes import copied_if_pipe
from elmo_tf.text import tokenizers

TRAIN, HELDOUT = "train", "heldout"  # the names of the two splits

# What a line is: a sentence, a paragraph of sentences, or part of a paragraph that ends at the next blank line.
LINES = (SENTENCE, PARAGRAPH, PART) = ("sentence", "paragraph", "part")

MAX_TOKENS = reading.BLOCK_BYTES  # in a line that is a sentence

Words = list[bytes]  # the tokens of a sentence


class Settings(NamedTuple):
    """How text becomes sentences."""

    tokenizer: str  # a name in tokenizers.TOKENIZERS
    line: str  # what a line of the text is, as in LINES
    seed: int = 0  # decides which sentences are held out
    heldout_fraction: float | None = None  # of the distinct sentences; None: hold out none
    id_column: int | None = None  # the column with the identifier in tab-separated lines, from 1; None: no identifiers

    @property
    def has_ids(self) -> bool:
        """Whether each sentence begins with its identifier, as its first token."""
        return self.id_column is not None

    @property
    def needs_tensorflow(self) -> bool:
        """Whether TensorFlow and tensorflow-text split the text."""
        return self.tokenizer == "unicode" or self.line != SENTENCE

    def split(self, sentences: list[Words]) -> dict[str, list[Words]]:
        """Returns the sentences of each split, which depends only on a sentence's words and the seed."""
        if self.heldout_fraction is None:
            return {TRAIN: sentences, HELDOUT: []}
        splits: dict[str, list[Words]] = {TRAIN: [], HELDOUT: []}
        key, limit = self.seed.to_bytes(8, "little"), self.heldout_fraction * 2**64
        for words in sentences:
            digest = hashlib.blake2b(b" ".join(words), digest_size=8, key=key).digest()
            splits[HELDOUT if int.from_bytes(digest, "little") < limit else TRAIN].append(words)
        return splits


def rules(settings: Settings, numbered: bool = False) -> dict[str, str]:
    """Returns the treatment of irregular text, by the names in `lines.RULES`; see `Reader`."""
    applied = dict(lines.RULES)
    if settings.tokenizer != "whitespace":
        applied["nul_lines"] = "kept; NUL is white space to this tokenizer"
    if settings.line == PART:
        del applied["blank_lines"]  # they separate paragraphs
    if numbered and settings.line == SENTENCE:
        del applied["long_lines"]
        applied |= dict.fromkeys(("blank_lines", "invalid_utf8_lines"), "kept as a sentence without tokens")
    if settings.tokenizer == "characters":
        applied["invalid_utf8_lines"] += "; in FASTA, only the bytes are dropped"
    return applied


class Batch(NamedTuple):
    """The sentences of a block of text."""

    source: str  # the file
    sentences: list[Words]  # in the text's order; none is empty, unless they are numbered
    irregular: collections.Counter  # see `lines.RULES`
    size: int  # bytes of text


class Reader:
    """Reads the sentences of tasks. Create it on the worker: the tokenizer may need TensorFlow.

    Args:
        settings: how text becomes sentences.
        numbered: whether every line, if lines are sentences, yields exactly one, of any length; a blank or
            dropped line yields a sentence without tokens.
    """

    def __init__(self, settings: Settings, numbered: bool = False):
        self._settings = settings
        self._numbered = numbered and settings.line == SENTENCE
        self._cleaner = lines.Cleaner(
            settings.line == PART, is_whitespace_tokenized=settings.tokenizer == "whitespace", numbered=self._numbered
        )

    def read(self, task: corpora.Task) -> Iterator[Batch]:
        """Yields the sentences of a task. Raises `InputError`, also if a numbered line has more than `MAX_TOKENS`."""
        for text_slice in task.slices:
            unfinished: list[Words] = []  # the beginning of a line that continues in the next block
            blocks = reading.read_blocks(text_slice, self._cleaner.paragraphs, self._cleaner.is_whitespace_tokenized)
            for block in blocks:
                sentences, irregular = self._split(block)
                if self._numbered:
                    if unfinished:
                        sentences[0] = unfinished.pop() + sentences[0]
                    self._check_lengths(sentences, block)
                    unfinished = [sentences.pop()] if block.is_cut else []
                else:
                    sentences = list(filter(None, sentences))
                yield Batch(block.source, sentences, irregular, len(block.data))
            if unfinished:
                yield Batch(text_slice.file.path, unfinished, collections.Counter(), 0)

    def _split(self, block: reading.Block) -> tuple[list[Words], collections.Counter]:
        """Returns the sentences of a block, which may lack tokens, and how often each rule applied."""
        text = self._cleaner.clean(block)
        column, texts = self._settings.id_column, text.lines
        if self._numbered and block.is_fasta:
            column = 1
        if column:
            names, texts = _split_off_column(texts, column, block.is_continuation)
        if self._settings.line != SENTENCE and texts:
            from elmo_tf.text import raw_text  # noqa: PLC0415 - it imports TensorFlow

            texts = raw_text.break_sentences(texts).numpy().tolist()
        sentences = tokenizers.split(texts, self._settings.tokenizer)
        if self._settings.has_ids:
            self._add_identifiers(sentences, names, block)
        if not self._cleaner.is_whitespace_tokenized:
            sentences = [lines.shorten(words, text.irregular) for words in sentences]
        return sentences, text.irregular

    def _add_identifiers(self, sentences: list[Words], names: list[bytes], block: reading.Block) -> None:
        """Inserts the identifier of each sentence that begins in a block. Raises `InputError` if it is missing."""
        for number in range(int(block.is_continuation), len(names)):
            if not names[number]:
                line, column = self._line_number(number, block), self._settings.id_column
                problem = f"line {line} has no identifier in column {column}, with a tab beside it"
                raise InputError(block.source, problem)
            sentences[number].insert(0, names[number])

    def _line_number(self, number: int, block: reading.Block) -> int:
        """Returns the line in the file at which the numbered sentence of a block begins."""
        ending = b"\n>" if block.is_fasta else b"\n"
        offset = sum(len(unit) + len(ending) for unit in block.data.split(ending)[:number])
        return reading.line_number(block, offset)

    def _check_lengths(self, sentences: list[Words], block: reading.Block) -> None:
        """Raises `InputError` if a numbered sentence of a block is too long."""
        for number, words in enumerate(sentences):
            if len(words) > MAX_TOKENS:
                line = self._line_number(number, block)
                problem = f"line {line} has more than {MAX_TOKENS:,} tokens; write one sentence per line"
                raise InputError(block.source, problem)


def read_lines(path: str, tokenizer: str) -> Iterator[str]:
    """Yields each line of a file or pipe, or each sequence of a FASTA file, before tokenization."""
    is_empty = True
    with copied_if_pipe(path) as source:
        cleaner = lines.Cleaner(paragraphs=False, is_whitespace_tokenized=tokenizer == "whitespace", numbered=True)
        for file in reading.inspect(corpora.match([str(source)]), tokenizer):
            unfinished = b""  # the beginning of a line that continues in the next block
            for block in reading.read_blocks(corpora.Slice(file), False, cleaner.is_whitespace_tokenized):
                try:
                    block.data.decode()
                except UnicodeDecodeError as error:
                    line = reading.line_number(block, error.start)
                    raise not_utf8(f"{path}, line {line}", error.reason) from None
                text_lines = cleaner.clean(block).lines
                if block.is_fasta:
                    _, text_lines = _split_off_column(text_lines, 1, block.is_continuation)
                if not text_lines:  # blank lines before the first record
                    continue
                text_lines[0], unfinished = unfinished + text_lines[0], b""
                if block.is_cut:
                    unfinished = text_lines.pop()
                is_empty = False
                yield from (line.rstrip(b"\r").decode() for line in text_lines)
            if unfinished:
                yield unfinished.decode()
    if is_empty:
        raise InputError(path, "the file is empty")


def _split_off_column(lines_of_text: list[bytes], column: int, continues: bool) -> tuple[list[bytes], list[bytes]]:
    """Returns each line's entry in a tab-separated column, counted from 1, and the rest of the line.

    The entry is empty if a line has no such column or no other column, or if it is the first and `continues` a line
    of the previous block.
    """
    entries, texts = [], []
    for number, line in enumerate(lines_of_text):
        columns = [line] if continues and number == 0 else line.split(b"\t")
        entries.append(columns.pop(column - 1).strip() if 1 < len(columns) >= column else b"")
        texts.append(b"\t".join(columns))
    return entries, texts
