"""Counts and tables as people read them."""

import unicodedata
from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines with aligned columns."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """Returns the columns that a text takes in a terminal: two for an ideograph, none for a combining mark."""
    marks = sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def with_count(count: int, noun: str) -> str:
    """Returns a number of things in words, such as `1 file` or `2,000 files`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
