"""Pairs of sentences with the class of their relation: SNLI's JSON lines, and tab-separated columns."""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.files import json_file
from elmo_tf.text.word_split import split_words

_NO_LABEL = "-"  # where SNLI's annotators did not agree
_NAMES = (_LABEL, _FIRST, _SECOND) = "gold_label", "sentence1", "sentence2"


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two sentences and the class of their relation, None if it is not known."""

    premise: list[str]
    hypothesis: list[str]
    label: str | None = None


def read_pairs(path: str | os.PathLike) -> list[Pair]:
    """Returns the pairs of a file that have a label; SNLI's `-` is none.

    A line is a JSON object with `gold_label`, `sentence1`, `sentence2`; or tab-separated columns, in the order that
    the first line names, or else label, premise and hypothesis. The tokens are those of `sentence1_binary_parse` and
    `sentence2_binary_parse` where these are given, else the words of the sentences.
    """
    found = [_pair(line, row, labelled=True) for line, row in _rows(path, min_columns=3)]
    return numbered_lines.require_some([pair for pair in found if pair.label != _NO_LABEL], path, "pair with a label")


def read_pairs_without_labels(path: str | os.PathLike) -> list[Pair]:
    """Returns the pairs of a file as `read_pairs` does, without their labels, which are optional.

    Columns without names are premise and hypothesis, or label, premise and hypothesis.
    """
    found = [_pair(line, row, labelled=False) for line, row in _rows(path, min_columns=2)]
    return numbered_lines.require_some(found, path, "pair")


def _rows(path: str | os.PathLike, min_columns: int) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yields each line with its fields by name."""
    lines = numbered_lines.filled_lines(path)
    first = next(lines, None)
    if first is None:
        return
    header = [name.strip() for name in first.text.split("\t")]
    if {_FIRST, _SECOND} <= set(header):
        for line in lines:
            yield line, dict(zip(header, line.text.split("\t"), strict=False))
        return
    is_json = first.text.lstrip().startswith("{")
    for line in itertools.chain([first], lines):
        fields = line.text.split("\t")
        if is_json:
            yield line, json_file.parse(line.text, dict, line.place)
        elif min_columns <= len(fields) <= 3:
            yield line, dict(zip(_NAMES[-len(fields) :], fields, strict=True))
        else:
            raise line.wrong("a label, a premise and a hypothesis between tabs")


def _pair(line: Line, row: dict[str, Any], labelled: bool) -> Pair:
    sides = []
    for name in (_FIRST, _SECOND):
        text, parse = row.get(name), row.get(f"{name}_binary_parse")
        if isinstance(parse, str) and parse.strip():
            tokens = re.sub(r"[()]", " ", parse).split()
        else:
            tokens = [word.text for word in split_words(text)] if isinstance(text, str) else []
        if not tokens:
            raise line.wrong(f"words in {name}", str(text))
        sides.append(tokens)
    if not labelled:
        return Pair(*sides)
    label = row.get(_LABEL)
    if not isinstance(label, str) or not label.strip():
        raise line.wrong(f"a label in {_LABEL}", str(label))
    return Pair(*sides, label.strip())
