"""CoNLL-U files."""

import pytest

from elmo_tf.annotated import conllu
from elmo_tf.annotated.columns import Tagged
from tests.annotated.text_file import assert_refused, write

CONLLU = """# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\t_\t0\t_\t_\t_
2\tn't\tnot\tPART\tRB\t_\t0\t_\t_\t_
2.1\tempty\tempty\tVERB\tVB\t_\t_\t_\t0:x\t_
3\t1 000\tgo\tVERB\tVB\t_\t0\t_\t_\t_


# only a remark

1\tno\tno\tINTJ\tUH\t_\t0\t_\t_\t_
"""


def test_words_are_read_and_multiword_tokens_and_empty_nodes_left_out(tmp_path):
    path = write(tmp_path, CONLLU, "packed.conllu.xz")
    first, second = conllu.read_conllu(path)
    assert first == Tagged(["Do", "n't", "1 000"], ["AUX", "PART", "VERB"])
    assert second == Tagged(["no"], ["INTJ"])
    assert conllu.read_conllu(path, "xpos")[0].labels == ["VBP", "RB", "VB"]


def test_a_form_that_is_only_a_no_break_space_is_left_out(tmp_path, caplog):
    path = write(tmp_path, CONLLU.replace("1 000", "\u00a0"))
    assert conllu.read_conllu(path)[0] == Tagged(["Do", "n't"], ["AUX", "PART"])
    assert caplog.messages == [f"warning: {path}: 1 odd line: line 6 (a form that is only white space: left out)"]


def test_sentences_whose_words_are_withheld_are_left_out_or_refused(tmp_path, caplog):
    withheld = "# text = _ _\n1\t_\t_\tPRON\tPRP\t_\t0\t_\t_\t_\n2\t_\t_\tVERB\tVB\t_\t0\t_\t_\t_\n\n"
    message = "it has no sentence, because its words are withheld: add them to it first$"
    assert_refused(conllu.read_conllu, write(tmp_path, withheld), message)
    path = write(tmp_path, withheld + CONLLU)
    caplog.clear()
    assert len(conllu.read_conllu(path)) == 2
    assert caplog.messages == [f"warning: {path}: 1 odd line: line 1 (words are withheld, _ stands for each: left out)"]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("1\tword\n", "10 columns of CoNLL-U, found ", 1),
        (CONLLU.replace("AUX", "_"), "a tag in the column upos, found ", 3),
        ("\n# nothing\n\n", "it has no sentence", None),
    ],
)
def test_a_line_of_another_format_or_without_a_tag_is_refused(tmp_path, text, message, line):
    assert_refused(conllu.read_conllu, write(tmp_path, text), message, line)
