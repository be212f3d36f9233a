"""How a job says what it has done: counts and sizes in words, a table, the software's versions."""

import platform
from collections.abc import Sequence, Sized
from typing import Any

import apache_beam as beam

import elmo_tf


def versions() -> dict[str, str]:
    """Returns which software is at work."""
    return {
        "elmo_tf": elmo_tf.__version__,
        "apache_beam": beam.__version__,
        "python": platform.python_version(),
    }


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines with columns of even widths."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def describe_irregular(found: dict[str, dict[str, Any]]) -> str:
    """Returns in words what was irregular: a line for each rule that was applied."""
    applied = [
        f"\n  {name.replace('_', ' ')}: {one['count']:,}, {one['rule']}" for name, one in found.items() if one["count"]
    ]
    return "irregular:" + ("".join(applied) or " nothing")


def number(things: Sized, noun: str) -> str:
    """Returns how many there are, in words."""
    return f"{len(things):,} {noun}{'s' * (len(things) != 1)}"


def megabytes(size: int) -> str:
    """Returns a number of bytes in words."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
