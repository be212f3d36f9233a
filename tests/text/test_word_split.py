"""Words and punctuation marks of running text."""

import pytest

from elmo_tf.text.word_split import split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man doesn't sleep.", "A man does n't sleep ."),
        ("Anna's dog (3.50 a day) isn't well-known!", "Anna 's dog ( 3.50 a day ) is n't well-known !"),
        ("they\u2019ll go ... to the U.S. --now", "they \u2019ll go ... to the U.S. -- now"),
    ],
)
def test_text_is_split_and_split_text_stays(text, words):
    assert " ".join(word.text for word in split_words(text)) == words
    assert [word.text for word in split_words(words)] == words.split()
    assert all(text[word.start : word.end] == word.text for word in split_words(text))
