"""Documents as lines of JSON."""

import json

import pytest

from elmo_tf.annotated.coref_documents import Document, document_of_text, read_documents
from tests.annotated.text_file import assert_refused, write

LINE = {
    "doc_key": "bn/a_0",
    "sentences": [["Anna", "sat"], [], ["she", "slept"]],
    "speakers": [["-", "-"], [], ["Bo", "Bo"]],
    "clusters": [[[0, 0], [2, 2]]],
}


def lines(*objects) -> str:
    return "".join(json.dumps(value) + "\n\n" for value in objects)


def test_mentions_end_with_their_last_word_and_speakers_may_be_unknown(tmp_path):
    nobody = {"sentences": [["It", ""]], "clusters": [], "speakers": [["-", "-"]]}
    first, second = read_documents(write(tmp_path, lines(LINE, nobody)))
    sentences = [["Anna", "sat"], ["she", "slept"]]
    assert first == Document("bn/a_0", sentences, [[(0, 1), (2, 3)]], [["", ""], ["Bo", "Bo"]])
    assert second == Document("", [["It", "_"]])
    assert (first.genre, second.genre) == ("bn", None)


def test_documents_without_clusters_may_be_text(tmp_path):
    text = "Anna sat. She slept!"
    first, second = read_documents(write(tmp_path, lines({"doc_key": "a", "text": text}, LINE)), labelled=False)
    assert first == document_of_text(text, "a")
    assert first.sentences == [["Anna", "sat", "."], ["She", "slept", "!"]]
    assert [text[begin:end] for begin, end in first.offsets] == [
        word for sentence in first.sentences for word in sentence
    ]
    assert second.clusters == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON: "),
        ({"sentences": [["a", 1]]}, r"sentences\[\d\]\[\d\] to be str"),
        ({"sentences": [[]]}, "its sentences have no words"),
        ({"speakers": [["a"], [], ["b", "b"]]}, "speakers, a name for each word, found"),
        ({"clusters": None}, "clusters to be array, found null"),
        ({"clusters": [[[2, 4]]]}, r"a mention is not inside the 4 words of the document: \[2, 4\]"),
        ({"clusters": [[[1, 0]]]}, r"a mention is not inside the 4 words of the document: \[1, 0\]"),
    ],
)
def test_wrong_lines_are_named(tmp_path, line, message):
    wrong = line if isinstance(line, str) else json.dumps(LINE | line)
    assert_refused(read_documents, write(tmp_path, lines(LINE) + wrong), message, line=3)


def test_an_empty_file_is_refused(tmp_path):
    assert_refused(read_documents, write(tmp_path, "\n"), "it has no document")
