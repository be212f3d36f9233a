"""Sentiment trees."""

import pytest

from elmo_tf.annotated import classes
from elmo_tf.annotated.classes import Classified
from tests.annotated.text_file import assert_refused, write


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
