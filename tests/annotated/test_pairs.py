"""Pairs of sentences: SNLI's two formats, and three columns."""

import json

import pytest

from elmo_tf.annotated import pairs
from elmo_tf.annotated.pairs import Pair
from elmo_tf.annotated.reading_options import Reading
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write

EXPECTED = [Pair(["Anna", "did", "n't", "sleep", "."], ["Anna", "'s", "awake"], "entailment")]


def snli(**changes) -> dict:
    return {"gold_label": "entailment", "sentence1": "Anna didn't sleep.", "sentence2": "Anna's awake"} | changes


def test_jsonl_with_or_without_parses(tmp_path, caplog):
    parses = {"sentence1_binary_parse": "( Anna ( ( did n't ) ( sleep . ) ) )"}
    for row in (snli(), snli(**parses)):
        path = write(tmp_path, json.dumps(row) + "\n" + json.dumps(snli(gold_label="-")) + "\n")
        caplog.clear()
        assert pairs.read_pairs(path) == EXPECTED
        assert caplog.messages == [f"warning: {path}: 1 of 2 rows have no label (-): left out"]
        assert [pair.label for pair in pairs.read_pairs(path, labeled=False)] == [None, None]
    brackets = {"sentence1_binary_parse": "( -LRB- ( x -RRB- ) )", "sentence2_binary_parse": "( a )"}
    (pair,) = pairs.read_pairs(write(tmp_path, json.dumps(snli(**brackets))))
    assert pair.premise == ["(", "x", ")"]


@pytest.mark.parametrize(
    "text",
    [
        "sentence2\tsentence1\tgold_label\nAnna's awake\tAnna didn't sleep.\tentailment\na\tb\t-\n",
        "entailment\tAnna did n't sleep .\tAnna 's awake \n",
    ],
)
def test_columns_by_their_names_or_in_order(tmp_path, text):
    assert pairs.read_pairs(write(tmp_path, text)) == EXPECTED


# Columns of published files, and those of them that hold the sentences and the label.
HEADERS = {
    ("gold_label", "sentence1", "sentence2"): ("sentence1", "sentence2", "gold_label"),
    ("premise", "hypothesis", "label"): ("premise", "hypothesis", "label"),
    ("index", "sentence1", "sentence2", "label"): ("sentence1", "sentence2", "label"),
    ("index", "question", "sentence", "label"): ("question", "sentence", "label"),
    ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"): ("question1", "question2", "is_duplicate"),
}


@pytest.mark.parametrize("names", HEADERS)
def test_the_names_of_published_data_sets_are_known_in_tables_and_json(tmp_path, names):
    values = zip(HEADERS[names], ("Anna didn't sleep.", "Anna's awake", "0"), strict=True)
    row = dict.fromkeys(names, "7") | dict(values)
    table = "\t".join(row) + "\n" + "\t".join(row.values()) + "\n"
    numbers = row | {HEADERS[names][2]: 0}
    unknown = row | {HEADERS[names][2]: -1}
    for text in (table, json.dumps(numbers) + "\n" + json.dumps(unknown)):
        path = write(tmp_path, text)
        assert pairs.read_pairs(path, Reading(labels=("entailment", "other"))) == EXPECTED
        assert [pair.label for pair in pairs.read_pairs(path)] == ["0"]


def test_a_number_without_a_name_is_refused(tmp_path):
    path = write(tmp_path, json.dumps(snli(gold_label=2)))
    with pytest.raises(InputError, match=f"^{path}, line 1: label 2 has no name: --labels gives 1, counted from 0$"):
        pairs.read_pairs(path, Reading(labels=("entailment",)))


def test_pairs_alone_need_no_label(tmp_path):
    path = write(tmp_path, "a b\tc\n")
    assert pairs.read_pairs(path, labeled=False) == [Pair(["a", "b"], ["c"])]
    assert_refused(pairs.read_pairs, path, "a label, a premise and a hypothesis separated by tabs, found ", line=1)
    alone = write(tmp_path, "a b\n")
    message = "expected a premise and a hypothesis, or a label, .* separated by tabs; all lines alike, found "
    assert_refused(lambda path: pairs.read_pairs(path, labeled=False), alone, message, line=1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'a'}", "not JSON: "),
        (json.dumps(snli(sentence2=" ")), "sentence2 has no words: ' '"),
        (json.dumps(snli(sentence1=3)), "sentence1 has no words: 3"),
        (json.dumps(snli(gold_label=None)), "a label in gold_label, found 'None'"),
    ],
)
def test_an_incomplete_line_is_refused(tmp_path, line, message):
    assert_refused(pairs.read_pairs, write(tmp_path, f"{json.dumps(snli())}\n{line}\n"), message, line=2)
    unlabeled = write(tmp_path, json.dumps(snli(gold_label="-")))
    assert_refused(pairs.read_pairs, unlabeled, "it has no pair with a label")
