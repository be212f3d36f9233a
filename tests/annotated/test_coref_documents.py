"""Documents with clusters of mentions, in columns and as lines of JSON."""

import json

import pytest

from elmo_tf.annotated.coref_documents import Document, document_of_text, read_documents
from elmo_tf.text import raw_text, tokenizers
from tests.annotated.text_file import assert_refused, write

TEXT = """#begin document (a/b); part 000
a/b 0 0 Anna (1)
a/b 0 1 saw (2|(3
a/b 0 2 her 3)|(1)|2)

a/b 0 0 # -

#end document
#begin document (c); part 012
c 0 0 It (1)
"""


def test_brackets_become_mentions_of_words_counted_through_the_document(tmp_path):
    first, second = read_documents(write(tmp_path, TEXT))
    assert (first.key, second.key) == ("a/b_0", "c_12")
    assert first.sentences == [["Anna", "saw", "her"], ["#"]]
    assert first.clusters == [[(0, 1), (2, 3)], [(1, 3)], [(1, 3)]]
    assert second.clusters == [[(0, 1)]]


def test_bars_between_brackets_are_optional_and_clusters_may_have_names(tmp_path):
    text = "#begin document (a);\na 0 0 b (1(2\na 0 1 c (e3)2)\na 0 2 d 1)(12(e3)\na 0 3 e 12)\n"
    (document,) = read_documents(write(tmp_path, text))
    assert document.clusters == [[(1, 2), (2, 3)], [(0, 2)], [(0, 3)], [(2, 4)]]


SPOKEN = """#begin document (GUM_court_a); part 0
a	0	0	I	-	-	-	-	-	Bo	-	(1)
a	0	1	see	-	-	-	-	-	-	-	

a	0	0	you	-	-	-	-	-	An Na	-	*	(2)

#begin document (nw/b); part 1
b	0	0		-	-	-	-	-	-	-	-
"""


def test_speakers_and_genres_are_read_where_they_are(tmp_path):
    first, second = read_documents(write(tmp_path, SPOKEN))
    assert (first.speakers, first.genre) == ([["Bo", ""], ["An Na"]], "court")
    assert (second.speakers, second.genre) == ([], "nw")
    # An empty column has no mention. An empty word still counts as a word.
    assert second.sentences == [["_"]]
    assert first.clusters == [[(0, 1)], [(2, 3)]]
    assert Document("105_persuasion", []).genre is None


def test_comments_and_documents_without_words_are_left_out(tmp_path):
    text = "#begin document (a);\n#end document\n#begin document (b);\n# text = Anna met Boris -\nb 0 0 Anna -\n"
    (document,) = read_documents(write(tmp_path, text))
    assert (document.key, document.sentences) == ("b_0", [["Anna"]])


LINE = {"doc_key": "bn/a_0", "sentences": [["Anna", "sat"], [], ["she", "slept"]], "clusters": [[[0, 0], [2, 2]]]}
LINE["speakers"] = [["-", "-"], [], ["Bo", "Bo"]]


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
    first, second = read_documents(write(tmp_path, lines({"doc_key": "a", "text": text}, LINE)), labeled=False)
    assert first == document_of_text(text, "a")
    assert first.sentences == [["Anna", "sat", "."], ["She", "slept", "!"]]
    assert [text[begin:end] for begin, end in first.offsets] == [
        word for sentence in first.sentences for word in sentence
    ]
    assert second.clusters == []


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Anna came. She sat down!", ["Anna came .", "She sat down !"]),
        ('"Who?" she asked. He left.', ['" Who ? " she asked .', "He left ."]),
        ('He said: "Go." She went.', ['He said : " Go . "', "She went ."]),
        ("Mr. Smith of Mt. Ives met J. K. Rowling.", ["Mr. Smith of Mt. Ives met J. K. Rowling ."]),
        ("So do I. It was 3.50 in the U.S. Then...", ["So do I .", "It was 3.50 in the U.S. Then ..."]),
        ("A heading\n \nA line that\ngoes on", ["A heading", "A line that goes on"]),
        ('"Go.\n\n"Stay." He did.', ['" Go .', '" Stay . "', "He did ."]),
        ("It is. It is. A\ud800\0", ["It is .", "It is .", "A ?"]),
        ("「行。」他說。你去。", ["「 行 。 」", "他 說 。", "你 去 。"]),
        (" \n", []),
    ],
)
def test_running_text_is_split_into_sentences_and_words_with_offsets(text, sentences):
    document = document_of_text(text)
    assert [" ".join(words) for words in document.sentences] == sentences
    words = [text[begin:end].replace("\ud800", "?") for begin, end in document.offsets]
    assert words == [word for sentence in document.sentences for word in sentence]


@pytest.mark.parametrize("tokenizer", tokenizers.TOKENIZERS)
def test_any_tokenizer_splits_the_sentences_of_running_text(tokenizer, monkeypatch):
    calls, tokenize = [], raw_text.tokenize_with_offsets
    monkeypatch.setattr(raw_text, "tokenize_with_offsets", lambda texts: calls.append(texts) or tokenize(texts))
    text = "\U0001f600 Anna came.\r\n\r\nAnna sat. Anna sat."
    document = document_of_text(text, tokenizer=tokenizer)
    assert ["".join(words) for words in document.sentences] == ["\U0001f600Annacame.", "Annasat.", "Annasat."]
    words = [text[begin:end] for begin, end in document.offsets]
    assert words == [word for sentence in document.sentences for word in sentence]
    assert len(calls) == (tokenizer == "unicode")  # one for all sentences: each takes milliseconds


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a 0 0 b -\n", "5 columns or more, after a line #begin document, found 'a 0 0 b -'", 1),
        ("#begin document (a);\na 0 0 b\n", "5 columns or more, ", 2),
        ("#begin document (a);\na 0 0 b 1)\n", r"the mention 1\) ends without a beginning$", 2),
        ("#begin document (a);\na 0 0 b x\n", r"mentions such as .*, found 'x'", 2),
        ("#begin document (a);\na 0 0 b (1\n#end document\n", r"the mention \(1 does not end in its document", 2),
        ("#begin document (a);\n#end document\n", "it has no document with words", None),
        ("\n", "it has no document", None),
        (lines(LINE) + "{", "not JSON: ", 3),
        (lines(LINE, LINE | {"sentences": [["a", 1]]}), r"sentences\[\d\]\[\d\] to be str", 3),
        (lines(LINE, LINE | {"sentences": [[]]}), "its sentences have no words", 3),
        (lines(LINE, LINE | {"speakers": [["a"], [], ["b", "b"]]}), "speakers, a name for each word, found", 3),
        (lines(LINE, LINE | {"clusters": None}), "clusters to be array, found null", 3),
        (lines(LINE, LINE | {"clusters": [[[2, 4]]]}), r"a mention is not inside the 4 words .*: \[2, 4\]", 3),
        (lines(LINE, LINE | {"clusters": [[[1, 0]]]}), r"a mention is not inside the 4 words .*: \[1, 0\]", 3),
    ],
)
def test_wrong_lines_are_named(tmp_path, text, message, line):
    assert_refused(read_documents, write(tmp_path, text), message, line)


def test_documents_whose_words_are_withheld_are_left_out_or_refused(tmp_path, caplog):
    withheld = "#begin document (a/b); part 000\na/b 0 0 [WORD] (1)\na/b 0 1 [WORD] -\n\n#end document\n"
    for labeled in (True, False):
        message = "it has no document with words, because its words are withheld: add them to it first"
        assert_refused(lambda path, labeled=labeled: read_documents(path, labeled), write(tmp_path, withheld), message)
    path = write(tmp_path, withheld + TEXT)
    caplog.clear()
    assert [document.key for document in read_documents(path)] == ["a/b_0", "c_12"]
    problem = "line 2 (words are withheld, [WORD] stands for each: left out)"
    assert caplog.messages == [f"warning: {path}: 1 odd line: {problem}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 0 0 Anna (1)\na 0 1 saw -\n", "a line #begin document before columns, found "),
        ("# newdoc\n1\tAna\tAna\n2\tsat\tsit\n", "a table, not columns of CoNLL-2012, JSON lines or running text"),
        ("name,text\na,It rained\n", "a table, not columns"),
        ('{"body": "It rained"}', "it has 'body', but no sentences or text$"),
        ('[{"text": "It rained"}]', "a JSON array; write an object per line"),
    ],
)
def test_a_table_is_no_running_text(tmp_path, text, message):
    line = 1 if "#begin" in message or "body" in message else None
    assert_refused(lambda path: read_documents(path, labeled=False), write(tmp_path, text), message, line)
