"""Files with labels: what is read of them, and which lines are refused."""

import gzip
import lzma

import numpy as np
import pytest

from elmo_tf.annotated import columns, conllu, semcor, word_vectors
from elmo_tf.errors import InputError

CONLLU = """# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\t_\t0\t_\t_\t_
2\tn't\tnot\tPART\tRB\t_\t0\t_\t_\t_
2.1\tempty\tempty\tVERB\tVB\t_\t_\t_\t0:x\t_
3\t1 000\tgo\tVERB\tVB\t_\t0\t_\t_\t_


# only a remark

1\tno\tno\tINTJ\tUH\t_\t0\t_\t_\t_
"""

SEMCOR = """# doc a/one
The\tDT\tthe\t_
grand_jury\tNN\tgrand_jury\tgrand_jury%1:14:00::
recent\tJJ\trecent\trecent%5:00:00:past:00

# doc a/two
_\t_\t_\t_
played\tVB\tplay\tplay%2:33:00::;2:33:01::
"""


def write(tmp_path, text: str, name: str = "file"):
    path = tmp_path / name
    opener = {"xz": lzma.open, "gz": gzip.open}.get(name.rpartition(".")[2], open)
    with opener(path, "wb") as file:
        file.write(text.encode())
    return path


@pytest.mark.parametrize("name", ["plain.conllu", "packed.conllu.xz", "packed.conllu.gz"])
def test_words_of_conllu_are_read_and_multiword_tokens_and_empty_nodes_left_out(tmp_path, name):
    path = write(tmp_path, CONLLU, name)
    first, second = conllu.read_conllu(path)
    assert first == (["Do", "n't", "1000"], ["AUX", "PART", "VERB"])
    assert second == (["no"], ["INTJ"])
    assert conllu.read_conllu(path, "xpos")[0].labels == ["VBP", "RB", "VB"]


def test_columns_with_tabs_or_spaces_become_bio(tmp_path):
    path = write(tmp_path, "-DOCSTART- O\n\nIn O\nNew I-LOC\r\nYork I-LOC\nSmith I-PER\n\n\na\tB-PER\nb\tX\tI-PER\n")
    assert columns.read_columns(path) == [
        (["In", "New", "York", "Smith"], ["O", "B-LOC", "I-LOC", "B-PER"]),
        (["a", "b"], ["B-PER", "I-PER"]),
    ]


def test_semcor_has_words_documents_and_senses(tmp_path):
    first, second = semcor.read_semcor(write(tmp_path, SEMCOR))
    assert (first.document, second.document) == ("a/one", "a/two")
    assert first.tokens == ["The", "grand", "jury", "recent"]
    assert first.uses == [
        (1, 3, "grand_jury%1", "grand_jury%1:14:00::"),
        (3, 4, "recent%3", "recent%5:00:00:past:00"),  # a satellite is an adjective
    ]
    assert second.tokens == ["_", "played"]
    assert second.uses == [(1, 2, "play%2", "play%2:33:00::")]  # the first of two


def test_first_senses_are_those_with_number_one(tmp_path):
    index = "play%2:33:00:: 01072949 1 107\nplay%2:36:00:: 01714208 2 50\nrecent%5:00:00:past:00 01 1 11\n"
    first = semcor.read_first_senses(write(tmp_path, index))
    assert first == {"play%2": "play%2:33:00::", "recent%3": "recent%5:00:00:past:00"}


def test_word_vectors_are_read(tmp_path):
    words, vectors = word_vectors.read_word_vectors(write(tmp_path, "the 0.5 -1\nna\u00efve 2 3e-1\n"))
    assert words == ["the", "na\u00efve"]
    np.testing.assert_allclose(vectors, [[0.5, -1], [2, 0.3]])
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (conllu.read_conllu, "1\tword\n", "--train: expected 10 columns of CoNLL-U, found .* in line 1 of"),
        (
            conllu.read_conllu,
            CONLLU.replace("AUX", "_"),
            "--train: expected a tag in the column upos, found .*line 3",
        ),
        (conllu.read_conllu, "\n# nothing\n\n", "--train: expected at least one sentence, found none in"),
        (
            columns.read_columns,
            "a O\nb\n",
            "--train: expected a token and a tag, O, B-.* or I-.*, found 'b' in line 2",
        ),
        (columns.read_columns, "a PER\n", "--train: expected a token and a tag, .*, found 'a PER' in line 1"),
        (columns.read_columns, "", "--train: expected at least one sentence, found none in"),
        (semcor.read_semcor, "a\tb\tc\n", "--train: expected form, part of speech, .*, found .* in line 1"),
        (
            semcor.read_semcor,
            "a\tb\tc\tsense\n",
            "--train: expected a sense key such as .*, found 'sense' in line 1",
        ),
        (semcor.read_semcor, "# doc a\n", "--train: expected at least one sentence"),
        (semcor.read_first_senses, "play%2:33:00:: 1 1\n", "--sense-index: expected a sense key, .* in line 1"),
        (semcor.read_first_senses, "play 01072949 1 107\n", "--sense-index: expected a sense key such as"),
        (semcor.read_first_senses, "a%1:03:00:: 01 2 3\n", "--sense-index: expected at least one first sense"),
        (word_vectors.read_word_vectors, "", "--glove: expected at least one word, found none in"),
        (
            word_vectors.read_word_vectors,
            "a 1 2\nb 1\n",
            "--glove: expected a word and 2 numbers, found 'b 1' in line 2",
        ),
        (word_vectors.read_word_vectors, "a 1 x\n", "--glove: expected a word and some numbers, found"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path, read, text, message):
    with pytest.raises(InputError, match=f"^{message}"):
        read(write(tmp_path, text))


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "latin1").write_bytes("na\u00efve O\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"^--train: expected UTF-8, found .* in .*latin1"):
        columns.read_columns(tmp_path / "latin1")
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"a O\n" * 99)[:40])
    for name in ("missing", "cut.xz"):
        with pytest.raises(InputError, match=f"^--train: expected a readable file, found .*{name}"):
            columns.read_columns(tmp_path / name)
