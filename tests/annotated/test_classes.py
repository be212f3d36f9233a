"""Sentences with a class each, and sentiment trees."""

import pytest

from elmo_tf.annotated import classes
from elmo_tf.annotated.classes import Classified
from elmo_tf.annotated.reading_options import Reading
from tests.annotated.text_file import assert_refused, write


def test_labels_and_tokens_are_read(tmp_path):
    path = write(tmp_path, "good\tIt works .\n\nnot bad\tReally\n")
    assert classes.read_classes(path) == [Classified(["It", "works", "."], "good"), Classified(["Really"], "not bad")]
    assert classes.read_classes(path, labeled=False) == [Classified(["It", "works", "."]), Classified(["Really"])]
    table = write(tmp_path, "index\tsentence\n0\tIt works\n")  # what is to be predicted needs no label
    assert classes.read_classes(table, labeled=False) == [Classified(["It", "works"])]


TABLE = "sentence\tlabel\nIt works.\t1\nIt doesn't\t0\n"
ROWS = '{"idx": 0, "text": "It works.", "label": 1}\n{"idx": 1, "text": "It doesn\'t", "label": 0}\n'


@pytest.mark.parametrize("text", [TABLE, ROWS, "1\tIt works.\n0\tIt doesn't\n"])
def test_columns_with_a_header_and_json_have_the_same_sentences(tmp_path, text):
    path = write(tmp_path, text)
    expected = [["It", "works", "."], ["It", "does", "n't"]]
    for labels in ((), ("bad", "good")):
        sentences = classes.read_classes(path, Reading(labels=labels))
        assert sentences == [
            Classified(tokens, [*labels, "0", "1"][number]) for tokens, number in zip(expected, (1, 0), strict=True)
        ]
    assert [sentence.tokens for sentence in classes.read_classes(path, labeled=False)] == expected


def test_sentences_are_split_by_the_tokenizer_that_is_asked_for(tmp_path):
    path = write(tmp_path, "a\tnew\u00a0york, (x)\n")
    assert classes.read_classes(path, Reading(tokenizer="whitespace"))[0].tokens == ["new\u00a0york,", "(x)"]
    assert classes.read_classes(path)[0].tokens == ["new", "york", ",", "(", "x", ")"]


@pytest.mark.parametrize("unknown", ["-1", "-1.0", " -1"])
@pytest.mark.parametrize("row", ['{{"text": "It works", "label": {}}}\n', "{}\tIt works\n"])
def test_minus_one_is_no_label_and_its_rows_are_counted(tmp_path, caplog, row, unknown):
    path = write(tmp_path, row.format(1) + row.format(unknown) * 2)
    for labels in ((), ("bad", "good")):
        caplog.clear()
        (sentence,) = classes.read_classes(path, Reading(labels=labels, strict=True))
        assert sentence == Classified(["It", "works"], ["1", *labels][-1])
        assert caplog.messages == [f"warning: {path}: 2 of 3 rows have no label (-1): left out"]
    assert len(classes.read_classes(path, labeled=False)) == 3


@pytest.mark.parametrize("missing", ["NaN", "null", "Infinity", '" "', "true"])
def test_a_row_whose_label_is_missing_is_named(tmp_path, missing):
    path = write(tmp_path, f'{{"text": "a", "label": 1.0}}\n{{"text": "b", "label": {missing}}}\n')
    assert_refused(classes.read_classes, path, "a label in label, found ", line=2)


def test_parquet_has_the_same_labels(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    for last, message in ((-1.0, None), (float("nan"), "a label in label, found 'nan'"), (None, "a label in label, ")):
        table = pyarrow.table({"text": ["a", "b"], "label": pyarrow.array([1.0, last], from_pandas=False)})
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
        if message:
            assert_refused(classes.read_classes, path, message, line=2)
        else:
            assert classes.read_classes(path) == [Classified(["a"], "1")]


def test_a_sentence_without_words_keeps_its_place_in_predictions(tmp_path):
    path = write(tmp_path, "text\tid\n\t0\nIt works\t1\n")
    assert classes.read_classes(path, labeled=False) == [Classified([]), Classified(["It", "works"])]
    cut = write(tmp_path, "id\ttext\n0\tIt works\n1\n")
    assert_refused(lambda path: classes.read_classes(path, labeled=False), cut, "text has no words: None", line=3)


def test_a_sentence_per_line_is_running_text_and_tables_and_trees_are_not(tmp_path):
    assert classes.is_running_text(write(tmp_path, "It works.\n\nSo, it does.\n"))
    for text in ("good\tIt works.\n", "(1 (1 It) (1 works))", '{"text": "It works."}', "id,sentence\n1,It works.\n"):
        assert not classes.is_running_text(write(tmp_path, text))
    assert not classes.is_running_text(write(tmp_path, "sentence\nIt works.\n", "a.csv"))


@pytest.mark.parametrize("line", ["It works", "\tIt works", "good\t "])
def test_a_line_without_label_or_sentence_is_refused(tmp_path, line):
    path = write(tmp_path, f"a\tb\n{line}\n")
    assert_refused(classes.read_classes, path, "a label (and a sentence separated by tabs|in label), found ", line=2)


def test_every_phrase_has_its_tokens_and_class(tmp_path):
    (tree,) = classes.read_trees(write(tmp_path, "(3 (2 It) (4 (2 -LRB-) (1 works)))\n\n"))
    assert tree.phrases == [
        Classified(["It"], "2"),
        Classified(["("], "2"),
        Classified(["works"], "1"),
        Classified(["(", "works"], "4"),
        Classified(["It", "(", "works"], "3"),
    ]
    assert tree.root.label == "3"


@pytest.mark.parametrize(
    "line",
    ["It works", "(3 (2 It)", "(3 It))", "(3 It) works", "(3 It) (2 works)", "(3 (It))", "(3 (2 ))", "((2 It))", "()"],
)
def test_a_line_that_is_not_a_tree_is_refused(tmp_path, line):
    path = write(tmp_path, f"(3 It)\n{line}\n")
    assert_refused(classes.read_trees, path, r"a tree such as \(3 \(2 It\) \(4 works\)\), found ", line=2)
