"""Word vectors in text files."""

import numpy as np
import pytest

from elmo_tf.annotated import word_vectors
from tests.annotated.text_file import assert_refused, write


def test_words_and_vectors_are_read(tmp_path):
    path = write(tmp_path, "the 0.5 -1\nna\u00efve 2 3e-1\n")
    words, vectors = word_vectors.read_word_vectors(path, {"the", "na\u00efve"})
    assert words == ["the", "na\u00efve"]
    np.testing.assert_allclose(vectors, [[0.5, -1], [2, 0.3]])
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "at least one word of the data, found none", None),
        ("a 1 2\nb 1\n", "a word and 2 numbers, found 'b 1'", 2),
        ("a\n", "a word and some numbers, found 'a'", 1),
        ("a 1 2\nb 1 x\n", "a word and 2 numbers, found 'b 1 x'", 2),
    ],
)
def test_a_line_without_such_a_vector_is_refused(tmp_path, text, message, line):
    assert_refused(lambda path: word_vectors.read_word_vectors(path, set("ab")), write(tmp_path, text), message, line)


def test_word2vec_and_words_with_spaces_are_read_and_only_wanted_words_kept(tmp_path):
    path = write(tmp_path, "3 2\nthe 1 2 \n. . . 3 4 \nat a@b.c 5 6 \nthe 7 8 \n")
    words, vectors = word_vectors.read_word_vectors(path, {"the", ". . .", "at a@b.c"})
    assert words == ["the", ". . .", "at a@b.c"]
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4], [5, 6]])
    words, vectors = word_vectors.read_word_vectors(path, {". . .", "new"})
    assert (words, vectors.tolist()) == ([". . ."], [[3, 4]])
