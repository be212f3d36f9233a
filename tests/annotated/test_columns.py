"""Files with a token and a tag per line, and tokens and tags as lists in rows."""

import functools
import json
import logging

import pytest

from elmo_tf.annotated import columns
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.reading_options import Reading, label_names
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write


def test_columns_with_tabs_or_spaces_become_iob2(tmp_path):
    path = write(tmp_path, "-DOCSTART- O\n\nIn O\nNew I-LOC\r\nYork I-LOC\nSmith I-PER\n\n\na\tB-PER\nb\tX\tI-PER\n")
    assert columns.read_columns(path) == [
        Tagged(["In", "New", "York", "Smith"], ["O", "B-LOC", "I-LOC", "B-PER"]),
        Tagged(["a", "b"], ["B-PER", "I-PER"]),
    ]


def test_a_column_of_conll_2003_is_chosen(tmp_path):
    path = write(tmp_path, "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n")
    assert columns.read_columns(path) == [Tagged(["EU", "rejects"], ["B-ORG", "O"])]
    for column in (2, -2):
        sentences = columns.read_columns(path, Reading(tag_column=column))
        assert sentences == [Tagged(["EU", "rejects"], ["B-NP", "B-VP"])]
    assert columns.read_columns(path, Reading(token_column=1))[0].tokens == ["NNP", "VBZ"]
    assert columns.read_columns(path, Reading(token_column=-4))[0].tokens == ["EU", "rejects"]
    for name in ("token", "tag"):
        expected = rf"no column 4 for --{name}-column: the lines have 4, counted from 0$"
        with pytest.raises(InputError, match=expected):
            columns.read_columns(path, Reading(**{f"{name}_column": 4}))
    wrong = Reading(tag_column=1)
    assert_refused(lambda path: columns.read_columns(path, wrong), path, ".*, found 'EU NNP I-NP I-ORG'", line=3)


def test_white_space_around_columns_or_in_a_token_is_dropped(tmp_path):
    path = write(tmp_path, "1\u00a0000 B-X \nEUR\tI-X \n")
    assert columns.read_columns(path) == [Tagged(["1000", "EUR"], ["B-X", "I-X"])]
    path = write(tmp_path, "New B-LOC x\nYork I-LOC y\n")
    assert columns.read_columns(path) == [Tagged(["New", "York"], ["B-LOC", "I-LOC"])]


UNIVERSAL = """# sent_id = a-1
# text = Ana lives in the U.S.
1\tAna\tB-PER\t-\tx
2\tlives\tO\t-\t-
3-4\tinthe\t_\t-\t-
3\tin\tO\t-\t-
4\tthe\tO\t-\t-
5\tU.S.\tB-LOC\t-\tx

# text = B-12
1\tNo\tO\t-\t-
"""
GERMEVAL = "#\thttp://example.org/\t[2010-01-01]\n1\tAna\tB-PER\tO\n2\tlebt\tO\tB-LOC\n"
MULTICONER = "# id 5239d808\tdomain=en\nana _ _ B-PER\nsat _ _ O\n\n# id 1f3a\tdomain=en\n# _ _ O\n"
WIKIANN = "en:Ana\tB-PER\nen:sat\tO\n\nen::\tO\n"
HEADER = "id,x\tword\tner\tsource\n0\tAna\tB-PER\tO\n0\tsat\tO\tO\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UNIVERSAL, [(["Ana", "lives", "in", "the", "U.S."], ["B-PER", "O", "O", "O", "B-LOC"]), (["No"], ["O"])]),
        (GERMEVAL, [(["Ana", "lebt"], ["B-PER", "O"])]),
        (MULTICONER, [(["ana", "sat"], ["B-PER", "O"]), (["#"], ["O"])]),
        (WIKIANN, [(["Ana", "sat"], ["B-PER", "O"]), ([":"], ["O"])]),
        (HEADER, [(["Ana", "sat"], ["B-PER", "O"])]),
        ("B-PER Ana\nO sat\n", [(["Ana", "sat"], ["B-PER", "O"])]),
    ],
    ids=["universal", "germeval", "multiconer", "wikiann", "header", "tags first"],
)
def test_columns_are_found_in_files_as_they_are_published(tmp_path, caplog, text, expected):
    caplog.set_level(logging.INFO, "elmo_tf")
    path = write(tmp_path, text)
    given = Reading(token_column="word", tag_column="ner") if text == HEADER else Reading()
    sentences = columns.read_columns(path, given)
    assert [(sentence.tokens, sentence.labels) for sentence in sentences] == expected
    (record,) = caplog.records
    assert "tokens in column " in record.getMessage()
    # `predict` reads the same sentences. A sentence may begin `O homem`: the user has to name a first column of tags.
    given = Reading(tag_column=0) if text.startswith("B-PER") else given
    assert columns.has_columns(path, given)
    assert columns.read_columns(path, given, labeled=False) == [Tagged(tokens) for tokens, _ in expected]


def test_columns_that_can_be_read_in_two_ways_are_refused_with_both(tmp_path):
    path = write(tmp_path, "Ana B-PER B-X x\nsat O O y\n")
    message = r"several columns could have the tags: line 1 has 'B-PER' \(--tag-column 1\) or 'B-X' \(--tag-column 2\)$"
    with pytest.raises(InputError, match=message):
        columns.read_columns(path)
    with pytest.raises(InputError, match=r"could have the tokens: .*'Ana' \(--token-column 1\) or 'x' \(--token-"):
        columns.read_columns(write(tmp_path, "B-PER Ana x\nO sat y\n"))
    with pytest.raises(InputError, match=r"no column is called 'tag'; the first line has Ana, B-PER$"):
        columns.read_columns(write(tmp_path, "Ana B-PER\n"), Reading(tag_column="tag"))


ODD = "Ana\tB-PER\t\n\tO\nsat\tO\n\n\ufeff\nRome\tB-LOC\n"


def test_odd_lines_are_left_out_and_said_once_or_refused(tmp_path, caplog):
    path = write(tmp_path, ODD)
    sentences = columns.read_columns(path)
    assert sentences == [Tagged(["Ana", "sat"], ["B-PER", "O"]), Tagged(["Rome"], ["B-LOC"])]
    message = next(text for text in caplog.messages if "odd lines" in text)
    assert message.startswith(f"warning: {path}: 3 odd lines: line 5 (a byte order mark: ignored), line 1 (a tab at ")
    with pytest.raises(InputError, match=r"line 5: a byte order mark; without --strict it is ignored$"):
        columns.read_columns(path, Reading(strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GERMEVAL, GERMEVAL.replace("B-PER\tO", "B-X\tO").replace("lebt\tO", "lebt\tB-Y")),
        (ODD, "Ana\tB-X\t\n\tO\nsat\tB-Y\n\n\nRome\tB-Z\n"),
        ("EU NNP I-ORG\nmet VB O\n", "EU NNP B-X\nmet VB B-Y\n"),
        ("Ana\nsat\n\nRome\n", "Ana\tB-X\nsat\tB-Y\n\nRome\tB-Z\n"),
    ],
)
def test_tags_are_written_into_the_columns_and_nothing_else_changes(tmp_path, text, expected):
    path = write(tmp_path, text)
    tags = [["B-X", "B-Y"], ["B-Z"]][: len(columns.read_columns(path, labeled=False))]
    assert "".join(f"{line}\n" for line in columns.with_tags(path, Reading(), tags)) == expected


def test_bioul_is_recognized_and_becomes_iob2(tmp_path):
    path = write(tmp_path, "a U-X\nb B-X\nc I-X\nd L-X\ne O\n\nf S-Y\ng B-Y\nh E-Y\n")
    labels = [sentence.labels for sentence in columns.read_columns(path)]
    assert labels == [["B-X", "B-X", "I-X", "I-X", "O"], ["B-Y", "B-Y", "I-Y"]]
    path = write(tmp_path, "\u738b B-N\n\u5c0f M-N\n\u660e E-N\n\u8bf4 O\n\na W-N\n")
    assert [sentence.labels for sentence in columns.read_columns(path)] == [["B-N", "I-N", "I-N", "O"], ["B-N"]]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a O\nb\n", "a token and a tag, O, B-.* or I-.*, found 'b'", 2),
        ("a PER\n", "a token and a tag, .*, found 'a PER'", 1),
        ("\u00a0\tO\n", "it has no sentence", None),
        ("a B-\n", "a token and a tag, .*, found 'a B-'", 1),
        ("-DOCSTART- O\n", "it has no sentence", None),
        ("a U-X\n\nb B-X\nc O\n", "tags in an order that BIOUL allows, found 'c O'", 4),
    ],
)
def test_a_line_without_a_tag_that_fits_is_refused(tmp_path, text, message, line):
    assert_refused(columns.read_columns, write(tmp_path, text), message, line)


BIG = [["New", "York"], ["is", "big"]]
CHUNKS = Reading(tag_column=2)


@pytest.mark.parametrize(
    ("text", "given", "tokens"),
    [
        ("New B-LOC\nYork I-LOC\n\nis O\nbig O\n", Reading(), BIG),
        ("-DOCSTART- -X- O O\n\nNew a b B-LOC\nYork a b I-LOC\n\nis a b O\nbig a b O\n", Reading(), BIG),
        ("New\nYork\n\nis\nbig\n", Reading(), BIG),
        ("-DOCSTART-\n\nNew\t\nYork\t\n\nis\nbig\n", Reading(), BIG),
        ("Rome B-LOC\n\nParis B-LOC\n", Reading(), [["Rome"], ["Paris"]]),  # all lines decide, not the first block
        # A chosen column concerns files that have it: `predict` may get plain text after a training with --tag-column.
        ("New\nYork\n\nis\nbig\n", CHUNKS, BIG),
        ("EU NNP I-NP I-ORG\nmet VBZ I-VP O\n", CHUNKS, [["EU", "met"]]),
        ("0\tNew\n0\tYork\n", Reading(token_column=1), [["New", "York"]]),
        ("New York is big\nRome is old too\n", CHUNKS, None),
    ],
)
def test_tokens_are_read_from_columns(tmp_path, text, given, tokens):
    path = write(tmp_path, text)
    assert columns.has_columns(path, given) == (tokens is not None)
    if tokens:
        assert columns.read_columns(path, given, labeled=False) == list(map(Tagged, tokens))


def test_columns_need_all_their_tags(tmp_path):
    path = write(tmp_path, "New B-LOC\nYork I-LOC\n\nis O\nbig")
    assert columns.has_columns(path)
    assert_refused(functools.partial(columns.read_columns, labeled=False), path, ".*, found 'big'", line=5)


@pytest.mark.parametrize(
    "text",
    [
        "New York\nis big\n",
        "New\tYork\t\n is\u00a0big\n",
        "We drove along I-95\n",
        "He takes vitamin B-12\nShe lives near I-95\n",
        "My blood type is O\n",
        "Mine is O\n\nWhose is B-positive\n\nNobody knows\n",
        "The word is a label\nno other tag is here\n",
        "# is a hash\n1 is a number\n",
        "1 Buy some milk\n2 Call Anna now\n3 Go home early\n",
        "O homem dorme\nO rato corre\n",
        "Eis O homem\nEis O rato\n",
    ],
)
def test_sentences_have_no_columns_even_if_they_end_as_tags_do(tmp_path, text):
    assert not columns.has_columns(write(tmp_path, text))


def test_the_header_of_a_single_column_is_no_token_and_has_its_name(tmp_path):
    path = write(tmp_path, "word\nAna\nsat\n")
    read = functools.partial(columns.read_columns, labeled=False)
    assert read(path, Reading(token_column="word")) == [Tagged(["Ana", "sat"])]
    assert read(path) == [Tagged(["word", "Ana", "sat"])]
    with pytest.raises(InputError, match=f"^{path}: no column is called 'form'; the first line has word$"):
        read(path, Reading(token_column="form"))


NAMES = ("O", "B-PER", "I-PER", "B-LOC")
TAG_ROWS = [
    {"id": "0", "tokens": ["Ana", "Li", "sat"], "ner_tags": [1, 2, 0]},
    {"id": "1", "tokens": ["Rome", "\u00a0"], "ner_tags": [3, 0]},
]
EXPECTED = [Tagged(["Ana", "Li", "sat"], ["B-PER", "I-PER", "O"]), Tagged(["Rome"], ["B-LOC"])]


def test_numbers_are_names_by_their_order(tmp_path, caplog):
    path = write(tmp_path, "\n".join(map(json.dumps, TAG_ROWS)))
    (tmp_path / "names").write_text("\n".join(NAMES))
    for labels in (label_names(",".join(NAMES)), label_names(str(tmp_path / "names"))):
        assert columns.read_columns(path, Reading(labels=labels)) == EXPECTED
    assert caplog.messages[0] == f"warning: {path}: 1 odd line: line 2 (an empty token: left out)"
    assert columns.read_columns(path, labeled=False) == [Tagged(sentence.tokens) for sentence in EXPECTED]


def test_names_may_stand_in_the_rows_in_any_scheme_and_under_another_key(tmp_path):
    row = {"words": ["Ana", "Li", "sat"], "entities": ["B-PER", "E-PER", "O"]}
    path = write(tmp_path, json.dumps(row))
    assert columns.read_columns(path, Reading(tag_column="entities")) == EXPECTED[:1]


def test_parquet_has_the_same_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    pyarrow.write_table(pytest.importorskip("pyarrow").Table.from_pylist(TAG_ROWS), tmp_path / "rows.parquet")
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
    path = write(tmp_path, json.dumps(TAG_ROWS[0] | {"ner_tags": ["O"] * 3}) + "\n" + json.dumps(row))
    assert_refused(columns.read_columns, path, message, line=2)
