"""Pairs of sentences: SNLI's two formats, and three columns."""

import json

import pytest

from elmo_tf.annotated import pairs
from elmo_tf.annotated.pairs import Pair
from tests.annotated.text_file import assert_refused, write

EXPECTED = [Pair(["Anna", "did", "n't", "sleep", "."], ["Anna", "'s", "awake"], "entailment")]


def snli(**changes) -> dict:
    row = {"gold_label": "entailment", "sentence1": "Anna didn't sleep.", "sentence2": "Anna's awake"}
    return row | changes


def test_jsonl_with_or_without_parses(tmp_path):
    parses = {"sentence1_binary_parse": "( Anna ( ( did n't ) ( sleep . ) ) )"}
    for row in (snli(), snli(**parses)):
        path = write(tmp_path, json.dumps(row) + "\n" + json.dumps(snli(gold_label="-")) + "\n")
        assert pairs.read_pairs(path) == EXPECTED
        assert [pair.label for pair in pairs.read_pairs_without_labels(path)] == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        "sentence2\tsentence1\tgold_label\nAnna's awake\tAnna didn't sleep.\tentailment\na\tb\t-\n",
        "entailment\tAnna did n't sleep .\tAnna 's awake \n",
    ],
)
def test_columns_by_their_names_or_in_order(tmp_path, text):
    assert pairs.read_pairs(write(tmp_path, text)) == EXPECTED


def test_pairs_alone_need_no_label(tmp_path):
    path = write(tmp_path, "a b\tc\n")
    assert pairs.read_pairs_without_labels(path) == [Pair(["a", "b"], ["c"])]
    assert_refused(pairs.read_pairs, path, "a label, a premise and a hypothesis between tabs, found ", line=1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'a'}", "JSON, found"),
        (json.dumps(snli(sentence2=" ")), "words in sentence2, found ' '"),
        (json.dumps(snli(sentence1=3)), "words in sentence1, found '3'"),
        (json.dumps(snli(gold_label=None)), "a label in gold_label, found 'None'"),
    ],
)
def test_an_incomplete_line_is_refused(tmp_path, line, message):
    assert_refused(pairs.read_pairs, write(tmp_path, f"{json.dumps(snli())}\n{line}\n"), message, line=2)
    unlabelled = write(tmp_path, json.dumps(snli(gold_label="-")))
    assert_refused(pairs.read_pairs, unlabelled, "at least one pair with a label, found none")
