"""Files with a token and a tag a line."""

import pytest

from elmo_tf.annotated import columns
from elmo_tf.errors import InputError
from tests.annotated.text_file import write


def test_columns_with_tabs_or_spaces_become_bio(tmp_path):
    path = write(tmp_path, "-DOCSTART- O\n\nIn O\nNew I-LOC\r\nYork I-LOC\nSmith I-PER\n\n\na\tB-PER\nb\tX\tI-PER\n")
    assert columns.read_columns(path) == [
        (["In", "New", "York", "Smith"], ["O", "B-LOC", "I-LOC", "B-PER"]),
        (["a", "b"], ["B-PER", "I-PER"]),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a O\nb\n", "path: expected a token and a tag, O, B-.* or I-.*, found 'b' in line 2 of .*file$"),
        ("a PER\n", "path: expected a token and a tag, .*, found 'a PER' in line 1 of .*file$"),
        ("", "path: expected at least one sentence, found none in .*file$"),
    ],
)
def test_a_line_without_a_tag_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=f"^{message}"):
        columns.read_columns(write(tmp_path, text))
