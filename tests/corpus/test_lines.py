"""Irregular text: what happens to it, and that it is counted."""

import collections
import time

import pytest

from elmo_tf.corpus import lines, reading

LONG = "x" * 700 + "\u00e9" * 400  # the cut falls inside a character

CASES = {
    "invalid_utf8_lines": (b"fine\nx \xff\n\xfe\nfine\n", [b"fine", b"fine"], 2),
    "blank_lines": (b"a\n\n \t\nb\n", [b"a", b"b"], 2),
    "byte_order_marks": ("\ufeffone\n\ufefftwo\n".encode(), [b"one", b"two"], 2),
    "carriage_return_lines": (b"a\nb\r\nc\rd\r\r\n", [b"a", b"b\r", b"c\rd\r\r"], 2),
    "nul_lines": (b"a\nb \0\0 c\n", [b"a", b"b \0\0 c"], 1),
    "non_nfc_lines": (
        "caf\u00e9\ncafe\u0301\n\u0301\n".encode(),
        ["caf\u00e9".encode(), "cafe\u0301".encode(), "\u0301".encode()],
        1,
    ),
    "unterminated_lines": (b"a\nb", [b"a", b"b"], 1),
    "long_lines": (
        b"a\n" + b"word  " * 11_000 + b"\n",
        [b"a", b"word  " * 10_922 + b"word ", b" " + b"word  " * 77],
        1,
    ),
    "long_tokens": (f"a\nb {LONG} {LONG}c d\n".encode(), [b"a", f"b {LONG[:850]} {LONG[:850]} d".encode()], 2),
}


def clean(text: bytes, paragraphs: bool = False, **block) -> lines.Text:
    cleaned = lines.Cleaner(paragraphs).clean(reading.Block(text, "a.txt", **{"position": 0, **block}))
    assert set(cleaned.irregular) <= set(lines.RULES)
    return cleaned


@pytest.mark.parametrize("rule", lines.RULES)
def test_irregular_text_is_corrected_and_counted(rule):
    text, usable, count = CASES[rule]
    cleaned = clean(text)
    assert cleaned.lines == usable
    assert cleaned.irregular == {rule: count}


def test_a_line_that_is_dropped_is_not_counted_as_kept():
    assert clean("e\u0301\n".encode() + "e\u0301 ".encode() + b"\xff\n").irregular == {
        "non_nfc_lines": 1,
        "invalid_utf8_lines": 1,
    }


def test_regular_text_is_unchanged():
    text = "one two\n \u00a0 \u2003three \x1c\x85\n" + "y" * 1000 + "\n"
    cleaned = clean(text.encode())
    assert cleaned.lines == text.encode().removesuffix(b"\n").split(b"\n")
    assert cleaned.irregular.total() == 0


def test_text_without_white_space_is_not_a_long_token_if_a_tokenizer_splits_it():
    text = "\u4e2d" * 30_000
    short = text[:400].encode()
    cleaner = lines.Cleaner(paragraphs=True, is_whitespace_tokenized=False)
    assert cleaner.clean(reading.Block(short + b"\n", "a.txt", 0)) == ([short + b" "], {})
    cleaned = cleaner.clean(reading.Block(text.encode() + b"\n", "a.txt", 0))
    assert [piece.decode() for piece in cleaned.lines] == [text[:21_845], text[21_845:] + " "]
    assert cleaned.irregular == {"long_lines": 1}


def test_long_tokens_of_a_tokenizer_are_cut_and_counted():
    words = [b"two", b"(", LONG.encode(), b")"]
    irregular = collections.Counter()
    assert lines.shorten(words, irregular) == [b"two", b"(", LONG[:850].encode(), b")"]
    assert irregular == {"long_tokens": 1}


def test_a_line_cut_by_the_reader_is_counted_once_and_white_space_alone_is_no_long_line():
    first, middle = clean(b"a b ", is_cut=True), clean(b"c ", is_continuation=True, is_cut=True)
    last = clean(b"d\n", is_continuation=True)
    assert [part.irregular for part in (first, middle, last)] == [{"long_lines": 1}, {}, {}]
    assert clean(b"a b\n\n" + b" " * 100, is_cut=True).irregular == {"blank_lines": 2}


def test_only_lines_that_are_long_are_counted_as_long_wherever_the_reader_has_cut():
    just = b"word " * 13_107 + b"x"
    assert len(just) == lines.MAX_LINE_BYTES
    assert clean(just + b"\n").irregular.total() == 0
    assert clean(b" " + just + b"\n").irregular == {"long_lines": 1}
    assert clean(b"end\n" + b" " + just + b"\n", is_continuation=True).irregular == {"long_lines": 1}


def test_paragraphs_are_joined_and_split_by_blank_lines_and_a_long_one_is_cut():
    cleaned = clean(b"\nOne.\nTwo\r\n\n \t\nthree\n\xff\nfour\n\n", paragraphs=True)
    assert [line.split() for line in cleaned.lines] == [[b"One.", b"Two"], [b"three"], [b"four"]]
    assert cleaned.irregular == {"carriage_return_lines": 1, "invalid_utf8_lines": 1}
    text = b"short\n\n" + b"some words\n" * 7000
    cleaned = clean(text, paragraphs=True)
    assert cleaned.irregular == {"long_lines": 1}
    assert b" ".join(cleaned.lines).split() == text.split()
    assert max(map(len, cleaned.lines)) <= lines.MAX_LINE_BYTES + 1


def test_tokens_just_short_enough_take_no_quadratic_time():
    text = (b"x" * 990 + b" ") * 66 + b"\n"  # a line of 65 kB

    def seconds(line: bytes) -> float:
        start = time.process_time()
        for _ in range(5):
            clean(line)
        return time.process_time() - start

    # A version that reads a token to its end from each of its bytes takes 500 times as long for 990 bytes as for 10.
    short = min(seconds(b"x" * 9 + b" ") for _ in range(3)) / 10
    assert min(seconds(text) for _ in range(3)) / len(text) < short * 4
