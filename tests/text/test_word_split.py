"""Words and punctuation marks of running text."""

import itertools
import random

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


def test_fine_words_end_at_hyphens_slashes_and_underscores():
    text = "a well-known girl didn't pay $3.50 and/or 12,000\u201313,000 at 10:30 in the U.S. -- a_b"
    words = "a well - known girl did n't pay $ 3.50 and / or 12,000 \u2013 13,000 at 10:30 in the U.S. - - a _ b"
    assert [word.text for word in split_words(text, finely=True)] == words.split()


@pytest.mark.parametrize("finely", [False, True])
def test_nothing_but_white_space_is_lost_and_places_cut_the_words(finely):
    generator = random.Random(0)
    pieces = [*"ab\u00e9Z09._-'`\"/,:\u2019\u2013 \t\n\u00a0\u0301\u4e2d\u00bd\U0001f600", "n't", "'s", "...", "U.S."]
    for _ in range(2000):
        text = "".join(generator.choices(pieces, k=generator.randrange(12)))
        words = split_words(text, finely)
        assert "".join(word.text for word in words) == "".join(text.split()), repr(text)
        assert all(text[word.start : word.end] == word.text for word in words), repr(text)
        assert all(one.end <= other.start for one, other in itertools.pairwise(words)), repr(text)
