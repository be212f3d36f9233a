"""Word vectors in text files."""

import zipfile

import numpy as np
import pytest

from elmo_tf.annotated import word_vectors
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write


def test_words_and_vectors_are_read(tmp_path):
    path = write(tmp_path, "the 0.5 -1\nna\u00efve 2 3e-1\n")
    words, vectors = word_vectors.read_word_vectors(path, {"the", "na\u00efve"})
    assert words == ["the", "na\u00efve"]
    np.testing.assert_allclose(vectors, [[0.5, -1], [2, 0.3]])
    assert vectors.dtype == np.float32


ODD = {
    "a blank line": "",
    "no word": " 3 4",
    "not a word and 2 numbers": "b 3",
    "a word that is not UTF-8": "caf\udcc3 3 4",
    "a value that is not a finite number": "b nan 4",
    "a value that is not a finite number ": "b x 4",
    "a value that is not a finite number  ": "b 3 inf",
}


@pytest.mark.parametrize("problem", ODD)
def test_an_odd_line_is_left_out_and_named_or_refused(tmp_path, caplog, problem):
    path = tmp_path / "vectors"
    path.write_bytes(f"a 1 2\n{ODD[problem]}\nc 5 6\n".encode("utf-8", "surrogateescape"))
    words, vectors = word_vectors.read_word_vectors(path, set("abc"))
    assert (words, vectors.tolist()) == (["a", "c"], [[1, 2], [5, 6]])
    assert caplog.messages == [f"warning: {path}: 1 odd line: line 2 ({problem.strip()}: left out)"]
    with pytest.raises(InputError, match=f"^{path}, line 2: {problem.strip()}; without --strict it is left out$"):
        word_vectors.read_word_vectors(path, set("abc"), strict=True)


def test_the_first_of_many_odd_lines_are_named(tmp_path, caplog):
    path = write(tmp_path, "a 1 2\n" + "b nan 2\n" * 5)
    word_vectors.read_word_vectors(path, {"a", "b"})
    assert caplog.messages[0].startswith(f"warning: {path}: 5 odd lines: line 2 (")
    assert caplog.messages[0].count("line") == 1 + 3 and caplog.messages[0].endswith(", ...")


def test_a_file_without_a_word_of_the_data_is_refused(tmp_path):
    for text in ("", "a\n"):
        assert_refused(
            lambda path: word_vectors.read_word_vectors(path, {"a"}),
            write(tmp_path, text),
            "it has no word of the data",
        )


def test_tabs_separate_and_an_archive_of_one_file_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "vectors.zip", "w") as archive:
        archive.writestr("vectors.txt", "2 2\na\t1\t2\nb\t3\t4\n")
    words, vectors = word_vectors.read_word_vectors(tmp_path / "vectors.zip", {"a", "b"})
    assert (words, vectors.tolist()) == (["a", "b"], [[1, 2], [3, 4]])


def test_word2vec_and_words_with_spaces_are_read_and_only_wanted_words_kept(tmp_path):
    path = write(tmp_path, "3 2\nthe 1 2 \n. . . 3 4 \nat a@b.c 5 6 \nthe 7 8 \n")
    words, vectors = word_vectors.read_word_vectors(path, {"the", ". . .", "at a@b.c"})
    assert words == ["the", ". . .", "at a@b.c"]
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4], [5, 6]])
    words, vectors = word_vectors.read_word_vectors(path, {". . .", "new"})
    assert (words, vectors.tolist()) == ([". . ."], [[3, 4]])


@pytest.mark.parametrize("folder", ["hash", "embeddings"])
def test_sennas_words_stand_in_a_file_of_their_own(tmp_path, folder):
    for name in ("hash", "embeddings"):
        (tmp_path / name).mkdir()
    path = tmp_path / "embeddings" / "embeddings.txt"
    path.write_text("1 2\n3 4\n5 6\n")
    (tmp_path / folder / "words.lst").write_text("PADDING\n!\nthe\n")
    words, vectors = word_vectors.read_word_vectors(path, {"the", "!"})
    assert words == ["!", "the"]
    np.testing.assert_array_equal(vectors, [[3, 4], [5, 6]])
    (tmp_path / folder / "words.lst").write_text("PADDING\n!\n")
    with pytest.raises(InputError, match=r"embeddings.txt: its number of lines differs from that of .*/words.lst$"):
        word_vectors.read_word_vectors(path, {"the", "!"})
