"""How tags of single tokens mark spans: IOB1, IOB2 and BIOUL.

IOB2: `B-` begins each span, `I-` continues it. IOB1: `B-` only directly after a span of the same kind. BIOUL (also
BIOES, BMES, BMEWO): `U-` (`S-`, `W-`) is a span of a single token, `L-` (`E-`) the last token of a longer span,
`I-` (`M-`) a token inside it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Span(NamedTuple):
    """A span of tokens of the same kind, from `start` to `end`, exclusive."""

    start: int
    end: int
    kind: str


def is_tag(text: str) -> bool:
    """Whether `text` is `O`, or a letter of BILEUSMW, a hyphen and a kind."""
    return text == "O" or (text[:1] in tuple("BILEUSMW") and text[1:2] == "-" and len(text) > 2)


def is_bioul(tags: Iterable[str]) -> bool:
    """Whether any tag occurs only in BIOUL, BIOES, BMES or BMEWO; otherwise they are IOB1 or IOB2."""
    return any(tag[0] in "LEUSMW" for tag in tags)


def unopened(tags: Sequence[str]) -> str | None:
    """Returns the first continuing tag whose kind has no `B-` tag, as in IOB1; None if there is none."""
    return next((tag for tag in tags if tag[0] in "ILE" and f"B-{tag[2:]}" not in tags), None)


def misplaced(tags: Sequence[str], bioul: bool) -> int | None:
    """Returns the index of a sentence's first misplaced tag, by BIOUL if `bioul`, else by IOB2; None: all are valid."""
    for position, (before, tag) in enumerate(zip(["O", *tags], [*tags, "O"], strict=True)):
        if not _may_follow(before, tag, bioul):
            return min(position, len(tags) - 1)
    return None


def as_iob2(tags: Sequence[str]) -> list[str]:
    """Converts tags of IOB2 or BIOUL to IOB2, tag by tag."""
    return [tag if tag == "O" else f"{'B' if tag[0] in 'BUSW' else 'I'}{tag[1:]}" for tag in tags]


def spans(tags: Sequence[str]) -> list[Span]:
    """Returns the spans of a sentence's tags in IOB2 or IOB1; an `I-` after another kind begins a span."""
    ranges: list[Span] = []
    for position, (before, tag) in enumerate(zip(["O", *tags][:-1], tags, strict=True)):
        if tag[:2] == "I-" and before[2:] == tag[2:]:
            ranges[-1] = ranges[-1]._replace(end=position + 1)
        elif tag != "O":
            ranges.append(Span(position, position + 1, tag[2:]))
    return ranges


def spans_to_iob2(spans: Iterable[Span], length: int) -> list[str]:
    """Returns the IOB2 tags of a sentence of `length` tokens with these spans, which must not overlap."""
    tags = ["O"] * length
    for start, end, kind in spans:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tags


def to_bioul(tags: Sequence[str]) -> list[str]:
    """Converts a sentence's IOB2 tags to BIOUL."""
    bioul = list(tags)
    for start, end, kind in spans(tags):
        inner = [f"I-{kind}"] * (end - start - 2)
        bioul[start:end] = [f"U-{kind}"] if end - start == 1 else [f"B-{kind}", *inner, f"L-{kind}"]
    return bioul


def allowed(tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns which tags, of IOB2 or BIOUL, may begin a sentence, follow each other (from, to) and end it.

    Arrays of bool: `(tags,)`, `(tags, tags)` and `(tags,)`.
    """
    bioul = is_bioul(tags)
    begin = [_may_follow("O", tag, bioul) for tag in tags]
    steps = [[_may_follow(before, tag, bioul) for tag in tags] for before in tags]
    end = [_may_follow(tag, "O", bioul) for tag in tags]
    return np.array(begin), np.array(steps), np.array(end)


def _may_follow(before: str, tag: str, bioul: bool) -> bool:
    is_open, continues = before[0] in "BIM", tag[0] in "ILEM"
    if continues:
        return is_open and before[2:] == tag[2:]
    return not (bioul and is_open)
