"""Sentiment trees."""

import pytest

from elmo_tf.annotated import trees
from elmo_tf.annotated.classes import Classified
from tests.annotated.text_file import assert_refused, write


def test_every_phrase_has_its_tokens_and_class(tmp_path):
    (tree,) = trees.read_trees(write(tmp_path, "(3 (2 It) (4 (2 -LRB-) (1 works)))\n\n"))
    assert tree.phrases == [
        Classified(["It"], "2"),
        Classified(["("], "2"),
        Classified(["works"], "1"),
        Classified(["(", "works"], "4"),
        Classified(["It", "(", "works"], "3"),
    ]
    assert tree.root.label == "3"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("It works", "no token outside of brackets"),
        ("(3 (2 It)", r"a \) for every \("),
        ("(3 It))", r"no \) without its \("),
        ("(3 It) (2 works)", "one tree"),
        ("(3 ())", r"a class after \("),
        ("(3 (2 ))", "a token in every bracket"),
        ("()", r"a class after \("),
    ],
)
def test_a_line_that_is_not_a_tree_is_refused(tmp_path, line, expected):
    path = write(tmp_path, f"(3 It)\n{line}\n")
    assert_refused(trees.read_trees, path, f"a tree such as .*: {expected}, found ", line=2)
