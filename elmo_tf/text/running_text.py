"""Running text of tasks to words with offsets, by the tokenizer's name."""

import re
from collections.abc import Iterator

from elmo_tf.text import characters, penn
from elmo_tf.text.penn import Word

_RUN = re.compile(r"[^ \t\n\v\f\r]+")
# Parts of a word that an answer may begin or end with.
_PART = re.compile(r"[-_/\u0640\u2010-\u2015]|[^-_/\u0640\u2010-\u2015]+")


def split(text: str, tokenizer: str = "penn", finely: bool = False) -> list[Word]:
    """Returns the words of a text.

    Args:
        text: in any language. Languages without spaces are split into words at punctuation alone, except that
            ideographs and kana are words of a single character.
        tokenizer: a name in `tokenizers.TOKENIZERS`.
        finely: whether hyphens, dashes, slashes and underscores inside a word are words of their own, so that more
            parts of the text begin and end with a word.

    Raises:
        ModuleNotFoundError: if the tokenizer is `unicode` and tensorflow-text is not installed.
    """
    words = _split(text, tokenizer)
    return [part for word in words for part in _parts(text, word)] if finely else words


def _split(text: str, tokenizer: str) -> list[Word]:
    if tokenizer == "penn":
        return penn.split_with_offsets(text)
    if tokenizer == "unicode":
        from elmo_tf.text import raw_text  # noqa: PLC0415 - imports TensorFlow

        return [Word(*word) for word in raw_text.split_texts([text])[0]]
    if tokenizer == "characters":
        return list(_located(text, [token.decode() for token in characters.split(text.encode(errors="replace"))]))
    return [Word(run.group(), run.start(), run.end()) for run in _RUN.finditer(text)]


def _located(text: str, tokens: list[str]) -> Iterator[Word]:
    end = 0
    for token in tokens:
        start = text.find(token, end)
        end = start + len(token)
        yield Word(token, start, end)


def _parts(text: str, word: Word) -> list[Word]:
    """Returns the parts of a word that has letters or digits on both sides of a hyphen or slash."""
    whole = text[word.start : word.end]
    parts = list(_PART.finditer(whole))
    if len(parts) == 1 or not any(character.isalnum() for character in whole):
        return [word]
    return [
        Word(inner.text, word.start + part.start() + inner.start, word.start + part.start() + inner.end)
        for part in parts
        for inner in penn.split_with_offsets(part.group())
    ]
