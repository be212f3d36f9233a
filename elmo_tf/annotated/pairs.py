"""Sentence pairs with the class of their relation: tables, JSON lines, and three columns."""

import dataclasses
import os
import re

from elmo_tf.annotated import labeled_rows, numbered_lines
from elmo_tf.annotated.labeled_rows import Example, Schema
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError

# The names of SNLI, MNLI, XNLI, RTE, QNLI, and Quora's questions. SNLI's `-`: its annotators did not agree.
_SCHEMA = Schema(
    (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question", "sentence"), ("question1", "question2")),
    ("gold_label", "label", "is_duplicate"),
    "a premise and a hypothesis",
    "a label, a premise and a hypothesis",
    unknown=("-", "-1"),
)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two sentences and the class of their relation, None if it is not known."""

    premise: list[str]
    hypothesis: list[str]
    label: str | None = None


def read_pairs(path: str | os.PathLike, reading: Reading = DEFAULT, labeled: bool = True) -> list[Pair]:
    """Returns the pairs of a file that have a label (not SNLI's `-`, or `-1`); all pairs unless `labeled`.

    The file is a table whose first line names its columns, JSON lines or Parquet, or each line has a label, a premise
    and a hypothesis separated by tabs. Names are `gold_label`, `label` or `is_duplicate`, and `sentence1` and
    `sentence2`, `premise` and `hypothesis`, `question` and `sentence`, or `question1` and `question2`, or those in
    `reading`. A label may be an index into `reading.labels`. The tokens are those of `sentence1_binary_parse` and
    `sentence2_binary_parse` if given, else `reading.tokenizer` splits the sentences. A warning counts the pairs that
    are left out. Unless `labeled`, labels are optional and not read, and a sentence may have no words.
    """
    pairs = []
    for example in labeled_rows.read_examples(path, _SCHEMA, reading, labeled):
        premise, hypothesis = (_tokens(example, name, reading, labeled) for name in example.texts)
        pairs.append(Pair(premise, hypothesis, example.label))
    return numbered_lines.require_nonempty(pairs, path, "pair with a label" if labeled else "pair")


def _tokens(example: Example, name: str, reading: Reading, labeled: bool) -> list[str]:
    text, parse = example.values[name], example.values.get(f"{name}_binary_parse")
    if isinstance(parse, str) and parse.strip():
        tokens = [numbered_lines.normalize_form(token) for token in re.sub(r"[()]", " ", parse).split()]
    else:
        tokens = reading.split(text) if isinstance(text, str) else []
    if not tokens and (labeled or not isinstance(text, str)):
        raise InputError(example.line.location, f"{name} has no words: {text!r}")
    return tokens
