"""Words and punctuation marks of running English text, with their places; for data whose sentences are not tokenized.

Text that is tokenized in the Penn Treebank's way (`do n't`, `Anna 's`) stays as it is.
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    "|".join(
        [
            # do|n't
            r"\w+(?=n['\u2019]t\b)|n['\u2019]t\b",
            # Anna|'s, they|'ll
            r"['\u2019](?:s|re|ve|ll|d|m)\b",
            # 3.50, 12,000, 10:30, 1/2
            r"\d+(?:[.,:/]\d+)+",
            # U.S.
            r"\b(?:[A-Za-z]\.){2,}",
            # well-known
            r"\w+(?:-\w+)*",
            r"\.\.\.+|--+|``|''",
            r"[^\w\s]",
        ]
    )
)


class Word(NamedTuple):
    """A word or a punctuation mark, and its place in the text."""

    text: str
    # Its first character, and the one behind its last.
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Returns the words and punctuation marks of a text."""
    return [Word(found.group(), found.start(), found.end()) for found in _TOKEN.finditer(text)]
