"""SemCor's columns and WordNet's index of senses."""

import pytest

from elmo_tf.annotated import senses
from tests.annotated.text_file import assert_refused, write

SEMCOR = """# doc a/one
The\tDT\tthe\t_
grand_jury\tNN\tgrand_jury\tgrand_jury%1:14:00::
recent\tJJ\trecent\trecent%5:00:00:past:00

# doc a/two
_\t_\t_\t_
played\tVB\tplay\tplay%2:33:00::;2:33:01::
"""


def test_semcor_has_words_documents_and_senses(tmp_path):
    first, second = senses.read_semcor(write(tmp_path, SEMCOR))
    assert (first.document, second.document) == ("a/one", "a/two")
    assert first.tokens == ["The", "grand", "jury", "recent"]
    assert first.uses == [
        (1, 3, "grand_jury%1", "grand_jury%1:14:00::", ()),
        # A satellite is an adjective.
        (3, 4, "recent%3", "recent%5:00:00:past:00", ()),
    ]
    assert second.tokens == ["_", "played"]
    # The first of two senses.
    assert second.uses == [(1, 2, "play%2", "play%2:33:00::", ())]


def test_first_senses_are_those_with_number_one(tmp_path):
    index = "play%2:33:00:: 01072949 1 107\nplay%2:36:00:: 01714208 2 50\nrecent%5:00:00:past:00 01 1 11\n"
    first = senses.read_first_senses(write(tmp_path, index))
    assert first == {"play%2": "play%2:33:00::", "recent%3": "recent%5:00:00:past:00"}


@pytest.mark.parametrize(
    ("read", "text", "message", "line"),
    [
        (senses.read_semcor, "a\tb\tc\n", "form, part of speech, .*", 1),
        (senses.read_semcor, "a\tb\tc\tsense\n", "a sense key such as .*, found 'sense'", 1),
        (senses.read_semcor, "# doc a\n", "it has no sentence", None),
        (senses.read_first_senses, "play%2:33:00:: 1 1\n", "a sense key, .*", 1),
        (senses.read_first_senses, "play 01072949 1 107\n", "a sense key such as .*", 1),
        (senses.read_first_senses, "a%1:03:00:: 01 2 3\n", "it has no first sense", None),
    ],
)
def test_a_line_of_another_format_is_refused(tmp_path, read, text, message, line):
    assert_refused(read, write(tmp_path, text), message, line)
