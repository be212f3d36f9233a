"""How tags of single tokens mark spans: IOB1, IOB2 and BIOUL.

IOB2: `B-` begins each span, `I-` continues it. IOB1: `B-` only directly after a span of the same kind. BIOUL (also
BIOES): `U-` (`S-`) is a span of one token, `L-` (`E-`) the last token of a longer one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

# BIOES uses E and S.
_BIOUL_LETTER = {"B": "B", "I": "I", "L": "L", "E": "L", "U": "U", "S": "U"}


class Span(NamedTuple):
    """Tokens `start` to `end`, exclusive, are of one kind."""

    start: int
    end: int
    kind: str


class WrongTag(ValueError):
    """A tag cannot occur where it does.

    Args:
        place: the index of the tag.
        expected: what can.
    """

    def __init__(self, place: int, expected: str):
        super().__init__(place, expected)
        self.place = place
        self.expected = expected


def is_tag(text: str) -> bool:
    """Whether `text` is `O`, or one of the letters, a hyphen and a kind."""
    return text == "O" or (text[:1] in _BIOUL_LETTER and text[1:2] == "-" and len(text) > 2)


def scheme_of(tags: Iterable[str]) -> str:
    """Returns `"BIOUL"` if one of the tags belongs to it alone, else `"IOB1"`, which reads IOB2 as well."""
    return "BIOUL" if any(tag[:1] in "LEUS" for tag in tags) else "IOB1"


def to_iob2(tags: Sequence[str], scheme: str) -> list[str]:
    """Returns one sentence's tags in IOB2.

    Raises:
        WrongTag: if a tag does not fit the scheme. IOB1 allows every order; an `I-` after another kind begins a span.
    """
    if scheme == "BIOUL":
        _check_bioul(tags)
        return as_iob2(tags)
    found = []
    for place, (before, tag) in enumerate(zip(["O", *tags[:-1]], tags, strict=True)):
        if tag[0] not in "OBI":
            raise WrongTag(place, f"a tag of {scheme}, O, B-... or I-...")
        begins = tag[:2] == "I-" and before[2:] != tag[2:]
        if begins and scheme == "IOB2":
            raise WrongTag(place, f"B-{tag[2:]} or I-{tag[2:]} before I-{tag[2:]} (IOB2)")
        found.append(f"B-{tag[2:]}" if begins else tag)
    return found


def as_iob2(tags: Sequence[str]) -> list[str]:
    """Returns the tags of IOB2 that stand for these, of IOB2 or BIOUL, one by one."""
    return [tag if tag == "O" else f"{'B' if tag[0] in 'BUS' else 'I'}{tag[1:]}" for tag in tags]


def spans(tags: Sequence[str]) -> list[Span]:
    """Returns the spans of one sentence's IOB2 tags; an `I-` after another kind begins a span."""
    found: list[Span] = []
    for place, (before, tag) in enumerate(zip(["O", *tags[:-1]], tags, strict=True)):
        if tag[:2] == "I-" and before[2:] == tag[2:]:
            found[-1] = found[-1]._replace(end=place + 1)
        elif tag != "O":
            found.append(Span(place, place + 1, tag[2:]))
    return found


def spans_to_iob2(found: Iterable[Span], length: int) -> list[str]:
    """Returns the IOB2 tags of a sentence of `length` tokens with these spans, which must not overlap."""
    tags = ["O"] * length
    for start, end, kind in found:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tags


def to_bioul(tags: Sequence[str]) -> list[str]:
    """Returns one sentence's IOB2 tags in BIOUL."""
    found = list(tags)
    for start, end, kind in spans(tags):
        inner = [f"I-{kind}"] * (end - start - 2)
        found[start:end] = [f"U-{kind}"] if end - start == 1 else [f"B-{kind}", *inner, f"L-{kind}"]
    return found


class Allowed(NamedTuple):
    """Which tags may begin a sentence, follow each other and end it: bool `(tags,)`, `(tags, tags)`, `(tags,)`."""

    begin: np.ndarray
    steps: np.ndarray  # from, to
    end: np.ndarray


def allowed(tags: Sequence[str]) -> Allowed:
    """Returns which of these tags, of IOB2 or BIOUL, may follow which."""
    bioul = scheme_of(tags) == "BIOUL"
    return Allowed(
        np.array([_may_follow("O", tag, bioul) for tag in tags]),
        np.array([[_may_follow(before, tag, bioul) for tag in tags] for before in tags]),
        np.array([_may_follow(tag, "O", bioul) for tag in tags]),
    )


def _may_follow(before: str, tag: str, bioul: bool) -> bool:
    is_open = before[0] in ("BI" if bioul else "")
    continues = tag[0] in "IL"
    if bioul:
        return before[2:] == tag[2:] and continues if is_open else not continues
    return not continues or (before[0] in "BI" and before[2:] == tag[2:])


def _check_bioul(tags: Sequence[str]) -> None:
    """Raises `WrongTag` at the first tag of BIOUL that cannot follow the one before it, or end the sentence."""
    letters = [tag if tag == "O" else _BIOUL_LETTER[tag[0]] + tag[1:] for tag in tags]
    for place, (before, tag) in enumerate(zip(["O", *letters[:-1]], letters, strict=True)):
        if not _may_follow(before, tag, bioul=True):
            is_open = before[0] in "BI"
            expected = f"I-{before[2:]} or L-{before[2:]} after {before}" if is_open else f"no {tags[place]} here"
            raise WrongTag(place, f"{expected} (BIOUL)")
    if letters and letters[-1][0] in "BI":
        raise WrongTag(len(tags) - 1, f"L-{letters[-1][2:]} or U-{letters[-1][2:]} at the end (BIOUL)")
