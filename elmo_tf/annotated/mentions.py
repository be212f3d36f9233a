"""A document with clusters of mentions, and the clusters of the brackets in a file's column."""

import collections
import dataclasses
import re
from collections.abc import Iterable
from typing import NamedTuple

from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.errors import InputError

NOTHING = ("-", "_", "*", "")  # no mention, or no speaker
EMPTY_WORD = "_"  # stands for a word without characters
# OntoNotes' names begin with the genre's folder; GUM's have the genre after the first underscore.
_GENRE = re.compile(r"([a-z]{2})/|GUM_([a-z]+)_")

# The indices of a mention's first word in the document, and of the word after its last.
Mention = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Document:
    """A document, or a part of one, and its clusters of mentions."""

    key: str
    sentences: list[list[str]]
    clusters: list[list[Mention]] = dataclasses.field(default_factory=list)
    # Each word's speaker, "" if unknown; the list is empty if no speaker is known.
    speakers: list[list[str]] = dataclasses.field(default_factory=list)
    # Where each word begins and ends in the text, in characters; empty without text.
    offsets: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    @property
    def genre(self) -> str | None:
        """The genre in the key of a document of OntoNotes (`bc/...`) or GUM (`GUM_news_...`); None for others."""
        match = _GENRE.match(self.key)
        return match[match.lastindex or 0] if match else None


class Bracket(NamedTuple):
    """One or both brackets of a mention."""

    line: Line
    cluster: str
    first: int | None  # the mention's first word in the document; None: it began before
    end: int | None  # the word after its last; None: it ends later


def clusters_of(brackets: Iterable[Bracket], odd: OddLines) -> list[list[Mention]]:
    """Returns the clusters of a document. Mentions without words are left out, and recorded."""
    clusters: dict[str, list[Mention]] = {}
    # The line and the first word of each open mention, innermost last.
    unclosed: dict[str, list[tuple[Line, int]]] = collections.defaultdict(list)
    for bracket in brackets:
        if bracket.first is not None:
            unclosed[bracket.cluster].append((bracket.line, bracket.first))
        if bracket.end is None:
            continue
        if not unclosed[bracket.cluster]:
            raise InputError(bracket.line.location, f"the mention {bracket.cluster}) ends without a beginning")
        line, first = unclosed[bracket.cluster].pop()
        if first == bracket.end:
            odd.add(line.number, "a mention without words")
        else:
            clusters.setdefault(bracket.cluster, []).append((first, bracket.end))
    for cluster, open_mentions in unclosed.items():
        if open_mentions:
            raise InputError(open_mentions[-1][0].location, f"the mention ({cluster} does not end in its document")
    return list(clusters.values())
