"""Pairs of sentences with the class of their relation: SNLI's jsonl and columns between tabs."""

import dataclasses
import itertools
import json
import os
import re
from collections.abc import Iterator

from elmo_tf.annotated import numbered_lines
from elmo_tf.text.word_split import split_words

_NO_LABEL = "-"  # where SNLI's annotators did not agree
_LABEL, _FIRST, _SECOND = "gold_label", "sentence1", "sentence2"
_PARSE = "_binary_parse"
_COLUMNS = "a label, a premise and a hypothesis between tabs"


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two sentences, and the class of their relation; None: without one."""

    premise: list[str]
    hypothesis: list[str]
    label: str | None = None


def read_pairs(path: str | os.PathLike) -> list[Pair]:
    """Returns the pairs of a file that have a label; SNLI's `-` is none.

    A line is a JSON object with `gold_label`, `sentence1`, `sentence2`; or these columns between tabs, in the order
    that the first line gives; or, without such a first line, label, premise and hypothesis. The tokens are those of
    `sentence1_binary_parse` and `sentence2_binary_parse` where these are, else the words of the sentences.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line that has not what it needs; or if there is no pair with a label.
    """
    found = [_pair(path, number, row, labelled=True) for number, row in _rows(path, (_LABEL, _FIRST, _SECOND))]
    return numbered_lines.require_some([pair for pair in found if pair.label != _NO_LABEL], path, "pair with a label")


def read_pairs_without_labels(path: str | os.PathLike) -> list[Pair]:
    """Returns the pairs of a file as `read_pairs` does, without their labels, which need not be there.

    A line without names of columns is premise and hypothesis, or label, premise and hypothesis.
    """
    found = [_pair(path, number, row, labelled=False) for number, row in _rows(path, (_FIRST, _SECOND))]
    return numbered_lines.require_some(found, path, "pair")


def _rows(path: str | os.PathLike, names: tuple[str, ...]) -> Iterator[tuple[int, dict]]:
    """Yields number and fields by name of each line."""
    lines = ((number, line) for number, line in numbered_lines.numbered_lines(path) if line.strip())
    first = next(lines, None)
    if first is None:
        return
    header = [name.strip() for name in first[1].split("\t")]
    if first[1].lstrip().startswith("{"):
        for number, line in itertools.chain([first], lines):
            yield number, _json_object(path, number, line)
    elif {_FIRST, _SECOND} <= set(header):
        for number, line in lines:
            yield number, dict(zip(header, line.split("\t"), strict=False))
    else:
        for number, line in itertools.chain([first], lines):
            fields = line.split("\t")
            if not len(names) <= len(fields) <= 3:
                raise numbered_lines.wrong_line(path, number, _COLUMNS, line)
            yield number, dict(zip((_LABEL, _FIRST, _SECOND)[-len(fields) :], fields, strict=True))


def _json_object(path: str | os.PathLike, number: int, line: str) -> dict:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise numbered_lines.wrong_line(path, number, "a JSON object", line)
    return found


def _pair(path: str | os.PathLike, number: int, row: dict, labelled: bool) -> Pair:
    sides = []
    for name in (_FIRST, _SECOND):
        text, parse = row.get(name), row.get(name + _PARSE)
        if isinstance(parse, str) and parse.strip():
            tokens = re.sub(r"[()]", " ", parse).split()
        else:
            tokens = [word.text for word in split_words(text)] if isinstance(text, str) else []
        if not tokens:
            raise numbered_lines.wrong_line(path, number, f"words in {name}", str(text))
        sides.append(tokens)
    if not labelled:
        return Pair(*sides)
    label = row.get(_LABEL)
    if not isinstance(label, str) or not label.strip():
        raise numbered_lines.wrong_line(path, number, f"a label in {_LABEL}", str(label))
    return Pair(*sides, label.strip())
