"""Characters as tokens, in plain Python; `in_graph` splits in the same way.

A character is a code point with the combining marks (Unicode's category M) and joiners (U+200C, U+200D) that follow it.
White space and control characters (categories Z and Cc) are not tokens; a mark after them is a separate character.
"""

import functools
import itertools
import re
import sys
import unicodedata

OTHER, MARK, SPACE = range(3)
_ASCII_SPACE = bytes([*range(33), 127])


def split(text: bytes) -> list[bytes]:
    """Returns the characters of a text in UTF-8, without white space; U+FFFD for bytes that are not UTF-8."""
    if text.isascii():
        kept = text.translate(None, _ASCII_SPACE)
        return [kept[index : index + 1] for index in range(len(kept))]
    return [character.encode() for character in _pattern().findall(text.decode(errors="replace"))]


@functools.cache
def kinds() -> list[tuple[int, int]]:
    """Returns (first code point, kind) of each run of code points of one kind: OTHER, MARK or SPACE."""
    runs = itertools.groupby(range(sys.maxunicode + 1), lambda point: _kind(chr(point)))
    return [(next(run), kind) for kind, run in runs]


def _kind(character: str) -> int:
    category = unicodedata.category(character)
    if category[0] == "M" or character in "\u200c\u200d":
        return MARK
    return SPACE if category[0] == "Z" or category == "Cc" else OTHER


@functools.cache
def _pattern() -> re.Pattern:
    ends = [*(point for point, _ in kinds()[1:]), sys.maxunicode + 1]
    classes = ["", "", ""]
    for (start, kind), end in zip(kinds(), ends, strict=True):
        classes[kind] += f"\\U{start:08x}-\\U{end - 1:08x}"
    return re.compile(f"[{classes[OTHER]}][{classes[MARK]}]*|[{classes[MARK]}]+")
