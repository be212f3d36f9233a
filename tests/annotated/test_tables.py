"""Tables: one reading for training and prediction, quotation marks, commas, and names that are not known."""

import functools
import json

import pytest

from elmo_tf.annotated import classes, pairs, tables
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from tests.annotated.text_file import assert_refused, write


def tokens_of(example) -> list[list[str]]:
    return [getattr(example, name) for name in ("tokens", "premise", "hypothesis") if hasattr(example, name)]


def assert_read(path, read, expected, labels, reading=DEFAULT) -> None:
    """Asserts that a file has the same sentences, tokens joined by spaces, with and without their labels."""
    labeled, unlabeled = read(path, reading), read(path, reading, labeled=False)
    for examples in (labeled, unlabeled):
        assert [[" ".join(tokens) for tokens in tokens_of(example)] for example in examples] == expected
    assert [example.label for example in labeled] == labels


@pytest.mark.parametrize("name", ["file", "file.csv", "file.csv.gz"])
@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
@pytest.mark.parametrize("header", ["text label", "label text", "id Label other Text", " text label"])
def test_the_first_line_names_the_columns_in_any_order(tmp_path, header, delimiter, name):
    cells = {"text": ("It works, really; yes", "No"), "label": ("pos", "neg"), "id": ("0", "1"), "other": ("O", "x y")}
    names = header.split(" ")
    rows = [[cells.get(column.lower(), ("7", "8"))[number] for column in names] for number in range(2)]
    quoted = [[f'"{cell}"' if delimiter in cell else cell for cell in row] for row in [names, *rows]]
    path = write(tmp_path, "".join(f"{delimiter.join(row)}\n" for row in quoted), name)
    assert_read(path, classes.read_classes, [["It works , really ; yes"], ["No"]], ["pos", "neg"])


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_cells_are_quoted_as_spreadsheets_and_pandas_do(tmp_path, delimiter):
    text = 'text,label\r\n"He said ""wow"" twice.",pos\r\n"Two\r\n\r\nlines",neg\r\n\r\n"It works",pos\r\n'
    path = write(tmp_path, text.replace(",", delimiter))
    expected = [['He said " wow " twice .'], ["Two lines"], ["It works"]]
    assert_read(path, classes.read_classes, expected, ["pos", "neg", "pos"])
    (row,) = tables.read(write(tmp_path, '"a\tb"\t"c"\n'), "\t")
    assert row.cells == ["a\tb", "c"]
    path = write(tmp_path, "text,label\nIt works,pos\n'a',\"b\n")
    assert_refused(classes.read_classes, path, "it cannot be read as a table separated by ',': unexpected end of data")


@pytest.mark.parametrize(
    "sentence",
    ['"It works .', '" It works ."', '"It" works', 'It "works"', 'It works "', '"a', 'b"', '"', '""'],
)
def test_a_mark_is_a_mark_in_files_of_glue(tmp_path, sentence):
    path = write(tmp_path, f"sentence\tlabel\nfine\t1\n{sentence}\t0\nso it is\t1\n")
    assert_read(
        path, classes.read_classes, [["fine"], [" ".join(sentence.replace('"', ' " ').split())], ["so it is"]], [*"101"]
    )


@pytest.mark.parametrize("word", ["fine", '""fine""'])
def test_a_quoted_cell_does_not_swallow_lines_that_are_rows(tmp_path, word):
    path = write(tmp_path, f'sentence\tlabel\n"a {word} film .\t1\na poor film "\t0\n')
    expected = f'" a {word} film .'.replace('""', ' " " ')
    assert_read(path, classes.read_classes, [[" ".join(expected.split())], ['a poor film "']], ["1", "0"])


def test_a_quoted_table_of_pairs(tmp_path):
    path = write(tmp_path, 'id\tquestion1\tquestion2\tis_duplicate\n0\t"What is a ""bank""?"\tWho owns banks?\t0\n')
    assert_read(path, pairs.read_pairs, [['What is a " bank " ?', "Who owns banks ?"]], ["0"])


@pytest.mark.parametrize("labeled", [True, False])
@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"review": "a", "stars": 5}\n', "'review', 'stars'"),
        ("review,stars\na,5\n", "'review', 'stars'"),
        ("review;stars\na;5\n", "'review', 'stars'"),
        (",review,stars\n0,a,5\n", "'', 'review', 'stars'"),
    ],
)
def test_names_that_are_not_known_are_listed_beside_those_that_are_missing(tmp_path, text, keys, labeled):
    path = write(tmp_path, text)
    label, option = (", and no label", " and --label-column") if labeled else ("", "")
    message = f"it has {keys}, but no sentence or text{label}; --text-column{option} can give other names$"
    assert_refused(functools.partial(classes.read_classes, labeled=labeled), path, message, line=1)
    assert_read(path, classes.read_classes, [["a"]], ["5"], Reading(text_columns=("review",), label_column="stars"))
    wrong = Reading(text_columns=("body",), label_column="stars")
    read = functools.partial(classes.read_classes, reading=wrong, labeled=labeled)
    assert_refused(read, path, f"it has {keys}, but no body$", line=1)


def test_names_are_chosen_for_pairs(tmp_path):
    given = Reading(text_columns=("b", "a"), label_column="c")
    for text in ("a,c,b\nx,no,y\n", json.dumps({"a": "x", "c": "no", "b": "y"})):
        path = write(tmp_path, text)
        assert_read(path, pairs.read_pairs, [["y", "x"]], ["no"], given)
        names = "sentence1 and sentence2 or .* or question1 and question2, and no gold_label or label or is_duplicate"
        assert_refused(pairs.read_pairs, path, f"it has 'a', 'c', 'b', but no {names}; --text-column", line=1)


@pytest.mark.parametrize(
    ("read", "text", "line"),
    [
        (classes.read_classes, "0\tpos\tIt works\n", 1),
        (classes.read_classes, "pos\tIt works\nneg\tIt\tfails\n", 2),
        (pairs.read_pairs, "0\tno\tIt works\tIt fails\n", 1),
        (pairs.read_pairs, "no\tIt works\tIt fails\nIt works\tIt fails\tno\tno\n", 2),
    ],
)
def test_columns_without_names_are_as_documented_or_refused(tmp_path, read, text, line):
    path = write(tmp_path, text)
    for labeled in (True, False):
        assert_refused(functools.partial(read, labeled=labeled), path, ".*separated by tabs.*, found ", line=line)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (classes.read_classes, "It works\tpos\nFine\tneg\n"),
        (classes.read_classes, "stars\treview\n5\tIt works\n-1.5\tFine\n"),
        (pairs.read_pairs, "It works .\tIt fails .\tneutral\n"),
        (pairs.read_pairs, "similar\tone\tother\n1\tIt works .\tIt fails .\n"),
    ],
)
def test_columns_that_show_another_order_are_refused(tmp_path, read, text):
    path = write(tmp_path, text)
    for labeled in (True, False):
        message = "a label, .*|a label and a sentence in this order; name its columns in a first line: .*, found "
        assert_refused(functools.partial(read, labeled=labeled), path, f"({message})", line=1)


def test_lines_to_predict_are_alike(tmp_path):
    read = functools.partial(classes.read_classes, labeled=False)
    assert_refused(read, write(tmp_path, "It works\nneg\tIt fails\n"), "a sentence, or a label and a sentence", line=2)
    assert_refused(read, write(tmp_path, "neg\tIt fails\nIt works\n"), "a sentence, or a label and a sentence", line=2)


@pytest.mark.parametrize(
    "text", ["Yes, it works\nNo, it fails\n", "It works, really\n", '"So," he said\nSo, what?\n', "a;b\n"]
)
def test_sentences_with_commas_are_sentences(tmp_path, text):
    path = write(tmp_path, text)
    for reading in (DEFAULT, Reading(text_columns=("review",))):  # the names with which a system was trained
        assert len(classes.read_classes(path, reading, labeled=False)) == len(text.splitlines())


@pytest.mark.parametrize("first", ["a" * 140_000, "a\rb", "a" * 140_000 + ", b"])
def test_the_first_sentence_may_be_long_or_have_a_carriage_return(tmp_path, first):
    for text, labeled in ((f"1\t{first}\n0\tc\n", True), (f"{first}\nc\n", False)):
        examples = classes.read_classes(write(tmp_path, text), labeled=labeled)
        assert [" ".join(example.tokens) for example in examples] == [" ".join(first.replace(",", " ,").split()), "c"]


def test_other_files_that_are_not_text_are_refused(tmp_path):
    read = functools.partial(classes.read_classes, labeled=False)
    assert_refused(read, write(tmp_path, '[\n{"text": "a"}]\n'), "a JSON array; write an object per line, ")
    assert_refused(read, write(tmp_path, "text,label\na,b,c\n"), "2 columns, as in the first line, found", line=2)
    assert_refused(read, write(tmp_path, "text,text\na,b\n"), "several columns are called 'text'", line=1)
