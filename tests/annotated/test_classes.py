"""Sentences with a class each."""

import pytest

from elmo_tf.annotated import classes
from elmo_tf.annotated.classes import Classified
from tests.annotated.text_file import assert_refused, write


def test_labels_and_tokens_are_read(tmp_path):
    path = write(tmp_path, "good\tIt works .\n\nnot bad\tReally\n")
    assert classes.read_classes(path) == [Classified(["It", "works", "."], "good"), Classified(["Really"], "not bad")]
    assert classes.read_sentences(path) == [Classified(["It", "works", "."]), Classified(["Really"])]


@pytest.mark.parametrize("line", ["It works", "\tIt works", "good\t "])
def test_a_line_without_label_or_sentence_is_refused(tmp_path, line):
    path = write(tmp_path, f"a\tb\n{line}\n")
    assert_refused(classes.read_classes, path, "a label, a tab and a sentence, found ", line=2)
