"""Documents with clusters of mentions."""

import pytest

from elmo_tf.annotated import coref_documents
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
    first, second = coref_documents.read_documents(write(tmp_path, TEXT))
    assert (first.key, second.key) == ("a/b_0", "c_12")
    assert first.sentences == [["Anna", "saw", "her"], ["#"]]
    assert first.clusters == [[(0, 1), (2, 3)], [(1, 3)], [(1, 3)]]
    assert second.clusters == [[(0, 1)]]


def test_bars_between_brackets_are_optional_and_clusters_may_have_names(tmp_path):
    text = "#begin document (a);\na 0 0 b (1(2\na 0 1 c (e3)2)\na 0 2 d 1)(12(e3)\na 0 3 e 12)\n"
    (document,) = coref_documents.read_documents(write(tmp_path, text))
    assert document.clusters == [[(1, 2), (2, 3)], [(0, 2)], [(0, 3)], [(2, 4)]]


SPOKEN = """#begin document (GUM_court_a); part 0
a	0	0	I	-	-	-	-	-	Bo	-	(1)
a	0	1	see	-	-	-	-	-	-	-	

a	0	0	you	-	-	-	-	-	An Na	-	*	(2)

#begin document (nw/b); part 1
b	0	0		-	-	-	-	-	-	-	-
"""


def test_speakers_and_genres_are_read_where_they_are(tmp_path):
    first, second = coref_documents.read_documents(write(tmp_path, SPOKEN))
    assert (first.speakers, first.genre) == ([["Bo", ""], ["An Na"]], "court")
    assert (second.speakers, second.genre) == ([], "nw")
    # An empty column has no mention. An empty word still counts as a word.
    assert second.sentences == [["_"]]
    assert first.clusters == [[(0, 1)], [(2, 3)]]
    assert coref_documents.Document("105_persuasion", []).genre is None


def test_comments_and_documents_without_words_are_left_out(tmp_path):
    text = "#begin document (a);\n#end document\n#begin document (b);\n# text = Anna met Boris -\nb 0 0 Anna -\n"
    (document,) = coref_documents.read_documents(write(tmp_path, text))
    assert (document.key, document.sentences) == ("b_0", [["Anna"]])


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a 0 0 b -\n", "5 columns or more, after a line #begin document, found 'a 0 0 b -'", 1),
        ("#begin document (a);\na 0 0 b\n", "5 columns or more, ", 2),
        ("#begin document (a);\na 0 0 b 1)\n", r"the mention 1\) ends, but has not begun: '1\)'", 2),
        ("#begin document (a);\na 0 0 b x\n", r"mentions such as .*, found 'x'", 2),
        ("#begin document (a);\na 0 0 b (1\n#end document\n", r"the mention \(1 does not end in its document", 2),
        ("#begin document (a);\n#end document\n", "it has no document with words", None),
    ],
)
def test_wrong_lines_are_named(tmp_path, text, message, line):
    assert_refused(coref_documents.read_documents, write(tmp_path, text), message, line)
