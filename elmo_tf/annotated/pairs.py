"""Pairs of sentences with the class of their relation: JSON lines, columns with a header, and three columns."""

import dataclasses
import os
import re
from collections.abc import Iterator
from typing import Any

from elmo_tf.annotated import named_rows, numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError

# What the field's data sets call the label and the two sentences: SNLI, MNLI, XNLI, RTE, QNLI, Quora's questions.
_LABEL = ("gold_label", "label", "is_duplicate")
_UNKNOWN = ("-", "-1")  # where SNLI's annotators did not agree
_SIDES = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question", "sentence"), ("question1", "question2"))


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two sentences and the class of their relation, None if it is not known."""

    premise: list[str]
    hypothesis: list[str]
    label: str | None = None


def read_pairs(path: str | os.PathLike, reading: Reading = DEFAULT, labeled: bool = True) -> list[Pair]:
    """Returns the pairs of a file that have a label, which SNLI's `-` and `-1` are not; all pairs unless `labeled`.

    A line is a JSON object, or tab-separated columns, in the order that the first line names, or else label, premise
    and hypothesis. Names are `gold_label`, `label` or `is_duplicate`, and `sentence1` and `sentence2`, `premise` and
    `hypothesis`, `question` and `sentence`, or `question1` and `question2`. A label may be an index into
    `reading.labels`. The tokens are those of `sentence1_binary_parse` and `sentence2_binary_parse` where these are
    given, else `reading.tokenizer` splits the sentences. Unless `labeled`, labels are optional and not read.
    """
    pairs = [_pair(line, row, reading, labeled) for line, row in _rows(path, 3 if labeled else 2)]
    kept = [pair for pair in pairs if pair.label is not None or not labeled]
    return numbered_lines.require_nonempty(kept, path, "pair with a label" if labeled else "pair")


def _rows(path: str | os.PathLike, min_columns: int) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yields each line with its fields by name."""
    headers = ([[name] for name in pair] for pair in _SIDES)
    if named_rows.has_named_values(path) or any(named_rows.has_header(path, names) for names in headers):
        yield from named_rows.read(path)
        return
    names = (_LABEL[0], *_SIDES[0])
    for line in numbered_lines.nonblank_lines(path):
        fields = line.text.split("\t")
        if not min_columns <= len(fields) <= 3:
            label = "a label, " if min_columns == 3 else ""
            raise line.error(f"{label}a premise and a hypothesis between tabs")
        yield line, dict(zip(names[-len(fields) :], fields, strict=True))


def _pair(line: Line, row: dict[str, Any], reading: Reading, labeled: bool) -> Pair:
    names = next((pair for pair in _SIDES if all(name in row for name in pair)), _SIDES[0])
    sides: list[list[str]] = []
    for name in names:
        text, parse = row.get(name), row.get(f"{name}_binary_parse")
        if isinstance(parse, str) and parse.strip():
            tokens = [numbered_lines.normalize_form(token) for token in re.sub(r"[()]", " ", parse).split()]
        else:
            tokens = reading.split(text) if isinstance(text, str) else []
        if not tokens:
            raise InputError(line.location, f"{name} has no words: {text!r}")
        sides.append(tokens)
    premise, hypothesis = sides
    if not labeled:
        return Pair(premise, hypothesis)
    given = named_rows.value(row, _LABEL)
    if given is None or not str(given).strip():
        raise line.error(f"a label in {_LABEL[0]}", str(given))
    return Pair(premise, hypothesis, named_rows.label(line, row, _LABEL, reading.labels, _UNKNOWN))
