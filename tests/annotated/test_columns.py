"""Files with a token and a tag a line."""

import pytest

from elmo_tf.annotated import columns
from elmo_tf.annotated.columns import Tagged
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
    assert columns.read_columns(path, column=2) == [Tagged(["EU", "rejects"], ["B-NP", "B-VP"])]
    assert_refused(lambda path: columns.read_columns(path, column=1), path, ".*, found 'EU NNP I-NP I-ORG'", line=3)


def test_white_space_around_columns_or_in_a_token_is_dropped(tmp_path):
    path = write(tmp_path, "1\u00a0000 B-X \nEUR\tI-X \n")
    assert columns.read_columns(path) == [Tagged(["1000", "EUR"], ["B-X", "I-X"])]
    path = write(tmp_path, "New B-LOC x\nYork I-LOC y\n")
    assert columns.read_tokens(path, column=1) == [Tagged(["New", "York"])]


def test_bioul_is_recognized_and_becomes_iob2(tmp_path):
    path = write(tmp_path, "a U-X\nb B-X\nc I-X\nd L-X\ne O\n\nf S-Y\ng B-Y\nh E-Y\n")
    labels = [sentence.labels for sentence in columns.read_columns(path)]
    assert labels == [["B-X", "B-X", "I-X", "I-X", "O"], ["B-Y", "B-Y", "I-Y"]]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a O\nb\n", "a token and a tag, O, B-.* or I-.*, found 'b'", 2),
        ("a PER\n", "a token and a tag, .*, found 'a PER'", 1),
        ("\u00a0 O\n", "a token and a tag, .*, found '.*'", 1),
        ("a B-\n", "a token and a tag, .*, found 'a B-'", 1),
        ("-DOCSTART- O\n", "at least one sentence, found none", None),
        ("a U-X\n\nb B-X\nc O\n", "tags in an order that BIOUL allows, found 'c O'", 4),
    ],
)
def test_a_line_without_a_tag_that_fits_is_refused(tmp_path, text, message, line):
    assert_refused(columns.read_columns, write(tmp_path, text), message, line)


@pytest.mark.parametrize(
    "text",
    [
        "New York\nis big\n",
        "New B-LOC\nYork I-LOC\n\nis O\nbig O\n",
        "-DOCSTART- -X- O O\n\nNew a b B-LOC\nYork a b I-LOC\n\nis a b O\nbig a b O\n",
        "New\nYork\n\nis\nbig\n",
        "-DOCSTART-\n\nNew\t\nYork\t\n\nis\nbig\n",
        "New\tYork\t\n is\u00a0big\n",
    ],
)
def test_tokens_are_read_from_lines_or_columns(tmp_path, text):
    assert columns.read_tokens(write(tmp_path, text)) == [Tagged(["New", "York"]), Tagged(["is", "big"])]


@pytest.mark.parametrize(
    "text",
    [
        "We drove along I-95\n",
        "He takes vitamin B-12\nShe lives near I-95\n",
        "My blood type is O\n",
        "Mine is O\n\nWhose is B-positive\n\nNobody knows\n",
    ],
)
def test_sentences_that_end_as_tags_do_are_sentences(tmp_path, text):
    expected = [Tagged(line.split()) for line in text.splitlines() if line]
    assert columns.read_tokens(write(tmp_path, text)) == expected


def test_all_lines_decide_where_the_first_block_has_one_token_and_columns_need_all_their_tags(tmp_path):
    assert columns.read_tokens(write(tmp_path, "Rome B-LOC\n\nParis B-LOC\n")) == [Tagged(["Rome"]), Tagged(["Paris"])]
    path = write(tmp_path, "New B-LOC\nYork I-LOC\n\nis O\nbig")
    assert_refused(columns.read_tokens, path, ".*, found 'big'", line=5)
