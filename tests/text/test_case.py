"""Words in upper and lower case, in languages whose rules are not English's."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import pytest

from elmo_tf.text import case


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bank", "BANK"),
        ("STRASSE", "straße"),
        ("ΟΔΟΣ", "οδος"),
        ("ΟΔΟΣ", "οδοσ"),
        ("İSTANBUL", "istanbul"),
        ("İstanbul", "ISTANBUL"),
        ("Işık", "ışık"),
        ("IŞIK", "ışık"),
        ("It", "it"),
        ("Ї", "ї"),
        ("水", "水"),
    ],
)
def test_words_that_differ_in_case_alone_are_the_same(first, second):
    assert case.same(first, second) and case.same(second, first)


@pytest.mark.parametrize(("first", "second"), [("kız", "kiz"), ("ß", "s"), ("о", "o"), ("cafe", "café")])
def test_different_letters_make_different_words(first, second):
    assert not case.same(first, second)
