"""Words and punctuation marks of running English text, with their offsets.

Text that is already tokenized as in the Penn Treebank (`do n't`, `Anna 's`) is not changed.
"""

import re
from typing import NamedTuple

_NOT = r"n['\u2019]t\b"  # do|n't
_SHORT = r"['\u2019](?:s|re|ve|ll|d|m)\b"  # Anna|'s, they|'ll
_LETTERS_WITH_STOPS = r"\b(?:[A-Za-z]\.){2,}"  # U.S.
_QUOTES = r"``|''"
_WORD = r"[^\W_]+"


def _pattern(word: str, words: str, numbers: str, marks: str) -> re.Pattern:
    """Returns a pattern of tokens: what comes first counts. `word` is what `n't` is split from."""
    parts = (rf"{word}(?={_NOT})|{_NOT}", _SHORT, numbers, _LETTERS_WITH_STOPS, words, marks)
    return re.compile("|".join(parts))


# well-known; 3.50, 12,000, 10:30, 1/2
_TOKEN = _pattern(r"\w+", r"\w+(?:-\w+)*", r"\d+(?:[.,:/]\d+)+", rf"\.\.\.+|--+|{_QUOTES}|[^\w\s]")
# The same with hyphens, slashes and underscores as tokens of their own: well|-|known.
_FINE_TOKEN = _pattern(_WORD, _WORD, r"\d+(?:[.,:]\d+)+", rf"\.\.\.+|{_QUOTES}|[^\w\s]|_")


class Word(NamedTuple):
    """A word or a punctuation mark, and its offsets in the text."""

    text: str
    start: int  # its first character
    end: int  # the one after its last


def split_words(text: str, finely: bool = False) -> list[Word]:
    """Returns the words and punctuation marks of a text: all of it except white space.

    Args:
        text: running text of a language that puts spaces between words.
        finely: whether hyphens, dashes, slashes and underscores separate words, so that more parts of the text begin
            and end with a word.
    """
    pattern = _FINE_TOKEN if finely else _TOKEN
    return [Word(found.group(), found.start(), found.end()) for found in pattern.finditer(text)]
