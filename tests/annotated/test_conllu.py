"""CoNLL-U files."""

import pytest

from elmo_tf.annotated import conllu
from elmo_tf.annotated.columns import Tagged
from elmo_tf.errors import InputError
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


FEATURES = """# text = I see him
1\tI\t_\tPRON\tPRP\tCase=Nom|Number=Sing\t2\tnsubj\t_\t_
2-3\tseehim\t_\t_\t_\tCase=Gen\t_\t_\t_\t_
2\tsee\t_\tVERB\tVBP\tForm=Fin\t0\troot\t_\t_
3\thim\t_\tPRON\tPRP\tCase=Acc,Dat\t2\tobj\t_\t_
4\t.\t_\tPUNCT\t.\t_\t2\tpunct\t_\t_
"""


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("Case", ["Nom", "", "Acc,Dat", ""]),
        ("Form", ["", "Fin", "", ""]),
        ("form", ["I", "see", "him", "."]),
        ("DEPREL", ["nsubj", "root", "obj", "punct"]),
    ],
)
def test_labels_are_a_column_or_a_feature_which_words_may_lack(tmp_path, name, labels):
    path = write(tmp_path, FEATURES)
    assert conllu.read_conllu(path, name) == [Tagged(["I", "see", "him", "."], labels)]


def test_the_number_of_words_with_a_feature_is_reported(tmp_path, caplog):
    caplog.set_level("INFO", "elmo_tf")
    path = write(tmp_path, FEATURES)
    conllu.read_conllu(path, "Case")
    assert caplog.messages == [f"{path}: 2 of 4 words have the feature Case; the others have no label"]


PLUS = """# global.columns = ID FORM UPOS PARSEME:MWE
1\tgive\tVERB\t1:LVC
2\tup\tADP\t*

# global.columns = ID FORM UPOS PARSEME:MWE
1\tno\tINTJ\t*
"""


def test_conllu_plus_names_its_columns_and_may_lack_the_numbers_of_words(tmp_path):
    path = write(tmp_path, PLUS)
    assert conllu.read_conllu(path, "PARSEME:MWE") == [Tagged(["give", "up"], ["1:LVC", "*"]), Tagged(["no"], ["*"])]
    assert conllu.read_conllu(path)[0].labels == ["VERB", "ADP"]
    unnumbered = "# global.columns = UPOS FORM\nVERB\tgo\n"
    assert conllu.read_conllu(write(tmp_path, unnumbered, "b.conllup")) == [Tagged(["go"], ["VERB"])]


@pytest.mark.parametrize(
    ("text", "labels", "message", "line"),
    [
        (
            FEATURES,
            "case",
            r"tags: expected a column or feature of .* \(ID, FORM, .*, MISC, Case, Form, Number\); did ",
            None,
        ),
        (FEATURES.replace("Form=Fin", "Fin"), "Case", r"features such as Case=Nom\|Number=Sing, or _, found 'Fin'", 4),
        (PLUS, "Case", "it has no column FEATS; its columns are ID FORM UPOS PARSEME:MWE$", None),
        (PLUS.replace("FORM", "WORD"), "upos", "it has no column FORM", None),
        (
            PLUS.replace("UPOS P", "XPOS P").replace("XPOS", "UPOS", 1),
            "upos",
            "the columns of the file's first line",
            5,
        ),
        (PLUS.replace("\t*", ""), "upos", "4 columns of CoNLL-U", 3),
        ("(S (NN rain))", "Case", "tags: .* has trees, whose only labels are parts of speech$", None),
    ],
)
def test_unknown_labels_and_other_columns_are_refused(tmp_path, text, labels, message, line):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        conllu.read_labels(path, labels)
    assert line is None or f"line {line}:" in str(caught.value)
