"""Words and punctuation marks of running English text, with their offsets.

Text that is already tokenized as in the Penn Treebank (`do n't`, `Anna 's`) is not changed.
"""

import re
from typing import NamedTuple

_NOT = r"n['\u2019]t\b"  # do|n't
_SHORT = r"['\u2019](?:s|re|ve|ll|d|m)\b"  # Anna|'s, they|'ll
_LETTERS_WITH_STOPS = r"\b(?:[A-Za-z]\.){2,}"  # U.S.
_QUOTES = r"``|''"
_TOKEN = re.compile(
    "|".join(
        [
            rf"\w+(?={_NOT})|{_NOT}",
            _SHORT,
            # 3.50, 12,000, 10:30, 1/2
            r"\d+(?:[.,:/]\d+)+",
            _LETTERS_WITH_STOPS,
            # well-known
            r"\w+(?:-\w+)*",
            rf"\.\.\.+|--+|{_QUOTES}",
            r"[^\w\s]",
        ]
    )
)
# The same with hyphens, slashes and underscores as tokens of their own: well|-|known.
_WORD = r"[^\W_]+"
_FINE_TOKEN = re.compile(
    "|".join(
        [
            rf"{_WORD}(?={_NOT})|{_NOT}",
            _SHORT,
            r"\d+(?:[.,:]\d+)+",
            _LETTERS_WITH_STOPS,
            _WORD,
            rf"\.\.\.+|{_QUOTES}",
            r"[^\w\s]|_",
        ]
    )
)


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
