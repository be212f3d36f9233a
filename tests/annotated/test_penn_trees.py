"""Trees of the Penn Treebank."""

import json

import pytest

from elmo_tf import cli
from elmo_tf.annotated import conllu, coref_documents
from elmo_tf.annotated.columns import Tagged
from elmo_tf.errors import InputError
from elmo_tf.tasks import systems
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
        ("(S (NN rain)\n (NN \u00a0))\n", 2),
        ("(S NP\n (NN rain))\n", 2),
        ("(\n(NN rain) (S))\n", 2),
    ],
)
def test_a_malformed_tree_is_an_error_with_its_line(tmp_path, text, line):
    assert_refused(conllu.read_labels, write(tmp_path, text), r"a tree such as \(S ", line)


def test_white_space_beyond_ascii_does_not_end_a_word(tmp_path):
    assert conllu.read_labels(write(tmp_path, "(NP (CD 10\u00a0000))\n")) == [Tagged(["10\u00a0000"], ["CD"])]


@pytest.mark.parametrize("name", ["wsj_0001.mrg", "a.parse", "a.ptb.gz"])
def test_systems_that_read_running_text_read_the_words_of_trees(tmp_path, name):
    path, words = write(tmp_path, TREES, name), [sentence.tokens for sentence in SENTENCES]
    for task in ("ner", "sentiment"):
        kind = systems.system_class(task)
        system = kind(kind.recipes["small"])
        assert not system.is_running_text(path)
        assert [example.tokens for example in system.read_unlabeled(path)] == words
        assert system.is_running_text(write(tmp_path, "(It rains.)\n", "text"))
        with pytest.raises(InputError):
            system.read(path)  # without labels, nothing can be trained on
    assert [document.sentences for document in coref_documents.read_documents(path, labeled=False)] == [words]


def test_a_file_without_words_is_refused(tmp_path):
    assert_refused(conllu.read_labels, write(tmp_path, "(NP (-NONE- *))\n"), "it has no sentence$")


def test_the_probe_reads_trees(tmp_path, capsys):
    good, bad = write(tmp_path, TREES, "good.mrg"), write(tmp_path, "(S (NN rain)))\n", "bad.mrg")
    command = ["probe", "pos", "--model", "english", "--output", str(tmp_path / "out")]
    assert cli.main([*command, "--train", str(good), "--test", str(bad)]) == 1
    error = f"elmo-tf: error: {bad}, line 1: expected a tree such as (S (NP (NN rain)) (VP (VBD fell))), found "
    assert capsys.readouterr().err.endswith(f"{error}'(S (NN rain)))'\n")
    universal = write(tmp_path, "1\train\t_\tNOUN\tNN\t_\t_\t_\t_\t_\n", "ud.conllu")
    assert cli.main([*command, "--train", str(good), "--test", str(universal), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["labels"] == "xpos" and results["scores"]["most frequent tag"] == {"accuracy": 1}
