"""Counts and tables as people read them."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def with_count(count: int, noun: str) -> str:
    """Returns a number of things in words, such as `1 file` or `2,000 files`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
