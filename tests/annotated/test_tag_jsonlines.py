"""Tokens and tags as lists in rows."""

import json

import pytest

from elmo_tf.annotated import columns
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.reading_options import Reading, label_names
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write

NAMES = ("O", "B-PER", "I-PER", "B-LOC")
ROWS = [
    {"id": "0", "tokens": ["Ana", "Li", "sat"], "ner_tags": [1, 2, 0]},
    {"id": "1", "tokens": ["Rome", "\u00a0"], "ner_tags": [3, 0]},
]
EXPECTED = [Tagged(["Ana", "Li", "sat"], ["B-PER", "I-PER", "O"]), Tagged(["Rome"], ["B-LOC"])]


def test_numbers_are_names_by_their_order(tmp_path, caplog):
    path = write(tmp_path, "\n".join(map(json.dumps, ROWS)))
    (tmp_path / "names").write_text("\n".join(NAMES))
    for labels in (label_names(",".join(NAMES)), label_names(str(tmp_path / "names"))):
        assert columns.read_columns(path, Reading(labels=labels)) == EXPECTED
    assert caplog.messages[0] == f"warning: {path}: 1 odd line: line 2 (an empty token: left out)"
    assert columns.read_columns(path, labelled=False) == [Tagged(sentence.tokens) for sentence in EXPECTED]


def test_names_may_stand_in_the_rows_in_any_scheme_and_under_another_key(tmp_path):
    row = {"words": ["Ana", "Li", "sat"], "entities": ["B-PER", "E-PER", "O"]}
    path = write(tmp_path, json.dumps(row))
    assert columns.read_columns(path, Reading(tag_column="entities")) == EXPECTED[:1]


def test_parquet_has_the_same_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    pyarrow.write_table(pytest.importorskip("pyarrow").Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    assert columns.read_columns(tmp_path / "rows.parquet", Reading(labels=NAMES)) == EXPECTED
    (tmp_path / "wrong.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="it cannot be read as Parquet: "):
        columns.read_columns(tmp_path / "wrong.parquet")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"ner_tags": [0]}, "tokens, a list of strings, found"),
        ({"tokens": ["a"], "ner_tags": [0, 0]}, r"ner_tags, a list of 1 tags, found '\[0, 0\]'"),
        (
            {"tokens": ["a"], "ner_tags": [0]},
            "tags O, B-... or I-...; --labels names the tags that are numbers, found '0'",
        ),
        ({"tokens": ["a"], "ner_tags": ["PER"]}, "tags O, B-... or I-..., found 'PER'"),
    ],
)
def test_a_row_without_tokens_or_tags_is_named(tmp_path, row, message):
    path = write(tmp_path, json.dumps(ROWS[0] | {"ner_tags": ["O"] * 3}) + "\n" + json.dumps(row))
    assert_refused(columns.read_columns, path, message, line=2)
