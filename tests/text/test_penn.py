"""`text.penn`: Penn Treebank's rules, with offsets."""

import pytest

from elmo_tf.text import penn

TEXTS = (
    ("The bank lends money.", "The bank lends money ."),
    ("\"I don't know,\" said Mr. O'Brien.", "\" I do n't know , \" said Mr. O'Brien ."),
    ("It's 3:15 p.m. in the U.S.; they CAN'T.", "It 's 3:15 p.m. in the U.S. ; they CA N'T ."),
    ("You shouldn't've, rock'n'roll fans' o'clock.", "You should n't 've , rock'n'roll fans ' o'clock ."),
    ("J. T. Smith, c. 1850 (pp. 5-7).", "J. T. Smith , c. 1850 ( pp . 5 - 7 ) ."),
    ("So do I. He gave plan B.\n", "So do I . He gave plan B ."),
    ("A well-known 10-year-old paid $12,000.50, 1/2 of it.", "A well-known 10-year-old paid $ 12,000.50 , 1/2 of it ."),
    ("snake_case, _word_, AT&T, him/her", "snake_case , _ word _ , AT & T , him / her"),
    (
        "\u201cAnna\u2019s\u201d can\u2019t\u2014won\u2019t\u2026 1990\u201395 \u2013 \u2018so\u2019",
        "\" Anna 's \" ca n't -- wo n't ... 1990 - 95 -- ' so '",
    ),
    ("``Well,'' she said--at last...", '" Well , " she said -- at last ...'),
    ("Привет, мир! Cafe\u0301 «Ça va»\u00a0?", "Привет , мир ! Cafe\u0301 « Ça va » ?"),
    ("Up 👍🏽 👩‍👧!", "Up 👍🏽 👩‍👧 !"),
    ("a\x1fb\x00c", "a b c"),
    ("", ""),
)


@pytest.mark.parametrize(("text", "words"), TEXTS)
def test_running_text_becomes_words_and_split_text_stays(text, words):
    assert penn.split(text) == words.split(" " if words else None)
    assert penn.split(words) == words.split(" " if words else None)


def test_offsets_are_those_of_the_text_whose_quotes_and_dashes_are_read_as_ascii():
    text = "\u201cIt\u2019s\u201d\x1f\u00a0U.S.\u2014so"
    words = penn.split_with_offsets(text)
    assert [word.text for word in words] == ['"', "It", "'s", '"', "U.S.", "--", "so"]
    assert [text[word.start : word.end] for word in words] == [
        "\u201c",
        "It",
        "\u2019s",
        "\u201d",
        "U.S.",
        "\u2014",
        "so",
    ]


def test_bytes_that_are_not_utf8_are_kept():
    assert penn.split_bytes(b"caf\xe9, \xff so") == [b"caf", b"\xe9,", b"\xff", b"so"]
