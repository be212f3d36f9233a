"""Lines of text as sentences: how they are split into tokens, and which of them are held out."""

import hashlib
import itertools
from collections.abc import Callable
from typing import NamedTuple

from pipelines import corpora

TRAIN, HELDOUT = "train", "heldout"  # the names of the two splits

Tokenize = Callable[[list[bytes]], list[list[bytes]]]


class Settings(NamedTuple):
    """What turns text into sentences."""

    tokenizer: str  # a key of TOKENIZERS
    seed: int  # decides which sentences are held out
    heldout_fraction: float | None  # of the distinct sentences; None: none is held out

    def split(self, words: list[bytes]) -> str:
        """Returns the split that a sentence belongs to; it depends on its words and the seed alone."""
        if self.heldout_fraction is None:
            return TRAIN
        digest = hashlib.blake2b(b" ".join(words), digest_size=8, key=self.seed.to_bytes(8, "little")).digest()
        return HELDOUT if int.from_bytes(digest, "little") < self.heldout_fraction * 2**64 else TRAIN

    def sort(self, block: corpora.Block, tokenize: Tokenize) -> tuple[dict[str, list[list[bytes]]], int]:
        """Returns the tokens of a block's sentences by split, in the text's order, and how many lines are blank."""
        sentences = {TRAIN: [], HELDOUT: []}
        lines = tokenize(block.lines())
        for words in lines:
            if words:
                sentences[self.split(words)].append(words)
        return sentences, len(lines) - sum(map(len, sentences.values()))


def make_tokenizer(name: str) -> Tokenize:
    """Returns the function that splits a list of lines into tokens; call it where it is used, on the worker."""
    return TOKENIZERS[name]()


def _whitespace() -> Tokenize:
    # Of bytes, `split` knows just the six ASCII white space characters, as tf.strings.split does.
    return lambda lines: [line.split() for line in lines]


def _unicode() -> Tokenize:
    import tensorflow_text  # noqa: PLC0415 - seconds and TensorFlow, for those who ask for it

    tokenizer = tensorflow_text.UnicodeScriptTokenizer()

    def tokenize(lines: list[bytes]) -> list[list[bytes]]:
        if not lines:
            return []
        ragged = tokenizer.tokenize(lines)
        words = ragged.flat_values.numpy().tolist()
        return [words[start:end] for start, end in itertools.pairwise(ragged.row_splits.numpy().tolist())]

    return tokenize


TOKENIZERS: dict[str, Callable[[], Tokenize]] = {"whitespace": _whitespace, "unicode": _unicode}
