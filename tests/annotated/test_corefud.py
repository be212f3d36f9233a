"""CorefUD: coreference in the column MISC of CoNLL-U."""

import pytest

from elmo_tf.annotated.coref_documents import read_documents
from elmo_tf.annotated.mentions import Document
from tests.annotated.text_file import assert_refused, write


def row(index: str, form: str, entity: str = "") -> str:
    misc = f"SpaceAfter=No|Entity={entity}|Bridge=e1<e2" if entity else "SpaceAfter=No"
    return "\t".join([index, form, *"_______", misc]) + "\n"


def text(*rows: str, comments: str = "") -> str:
    return comments + "".join(rows) + "\n"


BEGIN = "# newdoc id = GUM_news_a\n# global.Entity = eid-etype-head-other\n# text = Ana saw her cat.\n"
TEXT = (
    text(row("1", "Ana", "(e1-person-1-)"), row("2", "saw"), comments=BEGIN + "# speaker = Bo\n")
    + text(row("1", "her", "(e2-animal-2-x(e1-person-1)"), row("2", "cat", "e2)"), row("3", "-LRB-"))
    + "# newdoc id = b\n# global.Entity = etype-GRP\n"
    + text(row("1", "It", "(animal-7)"), row("2", "is", "(animal-7"), row("3", "it", "7)"))
)


def test_mentions_speakers_and_names_of_documents_are_read(tmp_path):
    assert read_documents(write(tmp_path, TEXT)) == [
        Document(
            "GUM_news_a",
            [["Ana", "saw"], ["her", "cat", "("]],
            [[(0, 1), (2, 3)], [(2, 4)]],
            [["Bo", "Bo"], ["", "", ""]],
        ),
        Document("b", [["It", "is", "it"]], [[(0, 1), (1, 3)]]),
    ]


def test_clusters_are_those_of_the_same_document_in_columns(tmp_path):
    first, _ = read_documents(write(tmp_path, TEXT))
    columns = "#begin document (GUM_news_a);\na 0 0 Ana (1)\na 0 1 saw -\n\na 0 0 her (2|(1)\na 0 1 cat 2)\na 0 2 ( -\n"
    (document,) = read_documents(write(tmp_path, columns, "a.conll"))
    assert first.clusters == document.clusters


def test_a_mention_of_words_and_empty_nodes_has_the_words_and_others_are_left_out_and_counted(tmp_path, caplog):
    rows = [
        row("0.1", "_", "(e1-person-1-)"),
        row("1-2", "vamos"),
        row("1", "va", "(e1-person-1-"),
        row("1.1", "_", "(e2-x-1-(e3-x-1-"),
        row("2", "mos", "e2)"),
        row("2.1", "_", "e1)e3)"),
        row("3", "a", "(e4[1/2]-x-1-"),
        row("4", "b", "e4[1/2])(e1-x-1)"),
        row("5", "c", "(e4[2/2]-x-1-)"),
    ]
    path = write(tmp_path, text(*rows, comments=BEGIN))
    (document,) = read_documents(path)
    assert document.sentences == [["va", "mos", "a", "b", "c"]]
    assert document.clusters == [[(1, 2)], [(0, 2), (3, 4)], [(1, 2)]]
    reasons = ["line 10 (a mention in several parts: left out)", "line 4 (a mention without words: left out)"]
    assert caplog.messages == [f"warning: {path}: 2 odd lines: {', '.join(reasons)}"]


def test_without_labels_any_conllu_is_a_document_of_its_words(tmp_path):
    plain = text(row("1-2", "don't"), row("1", "do"), row("2", "n't"), comments="# text = don't\n")
    path = write(tmp_path, plain)
    assert read_documents(path, labeled=False) == [Document("", [["do", "n't"]])]
    assert_refused(read_documents, path, "it has no mention, Entity= in the column MISC$")
    assert read_documents(write(tmp_path, TEXT), labeled=False)[0].clusters == []


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        ("e2)", "e3)", r"the mention e3\) ends without a beginning$", 9),
        ("|Entity=e2)", "", r"the mention \(e2 does not end in its document$", 8),
        ("(e1-person-1-)", "e1", "mentions such as .*, found 'e1'", 5),
        ("(e1-person-1-)", "(e1(", "mentions such as .*, found ", 5),
        ("eid-etype", "id-etype", "the attribute eid or GRP, which names the cluster, found ", 2),
        ("(animal-7)", "(animal)", "mentions of 2 attributes or more, found ", 14),
        ("1\tAna", "1-2\tAna", "mentions at words, not at a multiword token, found ", 5),
        ("2\tsaw", "x\tsaw", "the number of a word, found 'x'", 6),
        ("2\tsaw\t_", "2\tsaw", "10 columns of CoNLL-U, found ", 6),
    ],
)
def test_wrong_lines_of_corefud_are_named(tmp_path, old, new, message, line):
    assert TEXT.count(old) == 1
    assert_refused(read_documents, write(tmp_path, TEXT.replace(old, new)), message, line)
