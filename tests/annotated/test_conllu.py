"""CoNLL-U files."""

import pytest

from elmo_tf.annotated import conllu
from elmo_tf.annotated.columns import Tagged
from elmo_tf.errors import InputError
from tests.annotated.text_file import write

CONLLU = """# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\t_\t0\t_\t_\t_
2\tn't\tnot\tPART\tRB\t_\t0\t_\t_\t_
2.1\tempty\tempty\tVERB\tVB\t_\t_\t_\t0:x\t_
3\t1 000\tgo\tVERB\tVB\t_\t0\t_\t_\t_


# only a remark

1\tno\tno\tINTJ\tUH\t_\t0\t_\t_\t_
"""


@pytest.mark.parametrize("name", ["plain.conllu", "packed.conllu.xz", "packed.conllu.gz"])
def test_words_are_read_and_multiword_tokens_and_empty_nodes_left_out(tmp_path, name):
    path = write(tmp_path, CONLLU, name)
    first, second = conllu.read_conllu(path)
    assert first == Tagged(["Do", "n't", "1000"], ["AUX", "PART", "VERB"])
    assert second == Tagged(["no"], ["INTJ"])
    assert conllu.read_conllu(path, "xpos")[0].labels == ["VBP", "RB", "VB"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tword\n", "path: expected 10 columns of CoNLL-U, found .* in line 1 of .*file$"),
        (CONLLU.replace("AUX", "_"), "path: expected a tag in the column upos, found .* in line 3 of .*file$"),
        ("\n# nothing\n\n", "path: expected at least one sentence, found none in .*file$"),
    ],
)
def test_a_line_of_another_format_or_without_a_tag_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=f"^{message}"):
        conllu.read_conllu(write(tmp_path, text))
