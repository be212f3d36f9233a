"""Trees of the Penn Treebank."""

import pytest

from elmo_tf import cli
from elmo_tf.annotated import conllu
from elmo_tf.annotated.columns import Tagged
from tests.annotated.text_file import assert_refused, write

TREES = r"""
( (S
    (NP-SBJ-1 (DT The) (NN 1\/2) )
    (VP (VBD fell)
      (S (NP-SBJ (-NONE- *-1) ) (-LRB- -LRB-) (NN M\*A) (-RRB- -RRB-) )))
  (. .) )

(TOP (INTJ (UH No))) ((S (VB Go)))
(NP (-NONE- *))
(NN rain)
"""
SENTENCES = [
    Tagged(["The", "1/2", "fell", "(", "M*A", ")", "."], ["DT", "NN", "VBD", "-LRB-", "NN", "-RRB-", "."]),
    Tagged(["No"], ["UH"]),
    Tagged(["Go"], ["VB"]),
    Tagged(["rain"], ["NN"]),
]


@pytest.mark.parametrize("name", ["wsj_0001.mrg", "a.parse", "a.ptb.gz"])
def test_words_and_tags_of_trees_are_read_without_traces_and_escapes(tmp_path, name):
    assert conllu.read_labels(write(tmp_path, TREES, name)) == SENTENCES


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("(S (NN rain)\n (VBD fell\n)", 1),  # not closed
        ("(S (NN rain))\n(S (VBD fell)\n", 2),
        ("(S (NN rain)))\n", 1),
        ("(S (NN rain))\nfell\n", 2),
        ("(S\n (NN rain fell))\n", 2),
        ("(S\n (NN))\n", 2),
        ("(S\n (NN rain) fell)\n", 2),
        ("(S\n ())\n", 2),
        ("(S NP\n (NN rain))\n", 2),
        ("(\n(NN rain) (S))\n", 2),
    ],
)
def test_a_malformed_tree_is_an_error_with_its_line(tmp_path, text, line):
    assert_refused(conllu.read_labels, write(tmp_path, text), r"a tree such as \(S ", line)


def test_a_file_without_words_is_refused(tmp_path):
    assert_refused(conllu.read_labels, write(tmp_path, "(NP (-NONE- *))\n"), "it has no sentence$")


def test_the_probe_reads_trees(tmp_path, capsys):
    good, bad = write(tmp_path, TREES, "good.mrg"), write(tmp_path, "(S (NN rain)))\n", "bad.mrg")
    command = ["probe", "pos", "--model", "english", "--output", str(tmp_path / "out")]
    assert cli.main([*command, "--train", str(good), "--test", str(bad)]) == 1
    error = f"elmo-tf: error: {bad}, line 1: expected a tree such as (S (NP (NN rain)) (VP (VBD fell))), found "
    assert capsys.readouterr().err.endswith(f"{error}'(S (NN rain)))'\n")
