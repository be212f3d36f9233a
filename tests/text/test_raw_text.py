"""Raw text becomes usable sentences and tokens."""

import random

import pytest
import tensorflow as tf

from elmo_tf.text import raw_text

SENTENCES = [
    "Mr. Smith said \u201cHi there!\u201d and left.",
    "It cost $3.50 in the U.S. on Jan. 5.",
    "Then what?!",
    "(Really.)",
    "\u201cQuoted.\u201d",
    "J. R. R. Tolkien et al. wrote it...",
    "'Well,' he said.",
    "He saw Fig. 3 of vol. 2, e.g. the river.",
    "Ok",
]
TOKENS = {
    "Don't stop!\u00a0Now": "Don 't stop ! Now",
    "The king\u2019s men 'tis rock 'n' roll": "The king \u2019s men ' tis rock ' n ' roll",
    "It cost $3.50, or 12,000 in 1999.": "It cost $ 3.50 , or 12,000 in 1999 .",
    "the well-known 24-year-old, 5th of the 1990s - yes": "the well-known 24-year-old , 5th of the 1990s - yes",
    "co--operate well... \u201cyes\u201d": "co -- operate well ... \u201c yes \u201d",
    "(a/b) 10:30 1/2": "( a / b ) 10:30 1/2",
    "Mr. Smith of the U.S. at 5 p.m. (e.g.)": "Mr. Smith of the U.S. at 5 p.m. ( e.g. )",
    "See https://example.com/a?b=c, or": "See https://example.com/a?b=c , or",
    "joe.x@mail.example.org.": "joe.x@mail.example.org .",
    "\u00e9t\u00e9 a\u0301b": "\u00e9t\u00e9 a\u0301b",  # a combining mark stays with its letter
    "\u4e2d\u6587abc\u3072\u3089\u30ab\u30fc": "\u4e2d\u6587 abc \u3072\u3089 \u30ab\u30fc",
    "a\0b\x01c \u2003d\r\n": "a b c d",
    " \t": "",
    "": "",
}


@pytest.mark.parametrize("text", TOKENS)
def test_words_numbers_and_marks_are_tokens(text):
    (tokens,) = raw_text.tokenize([text]).to_list()
    assert [token.decode() for token in tokens] == TOKENS[text].split()


def test_running_text_is_broken_into_its_sentences():
    for seed in range(20):
        order = random.Random(seed).sample(SENTENCES, len(SENTENCES))
        order.remove("Ok")
        paragraphs = [" ".join(order[:3]) + "  ", "\n".join(order[3:]) + " Ok", "", "no end"]
        broken = [sentence.decode() for sentence in raw_text.break_sentences(paragraphs).numpy()]
        assert broken == [*order, "Ok", "", "no end"]


def test_chinese_needs_no_white_space_between_sentences():
    broken = raw_text.break_sentences(["\u4e2d\u3002\u6587\uff01\u5b57"]).numpy()
    assert [sentence.decode() for sentence in broken] == ["\u4e2d\u3002", "\u6587\uff01", "\u5b57"]


def test_nothing_of_the_text_is_lost():
    choose = random.Random(0)
    paragraphs = [
        "".join(choose.choices("aB.!? \n\"')\u201d\u3002\u00e9\0", k=choose.randrange(40))) for _ in range(500)
    ]
    broken = raw_text.break_sentences(paragraphs)
    squeezed = [
        "".join(b"".join(texts).decode().replace("\0", "").split())
        for texts in (broken.numpy().tolist(), [text.encode() for text in paragraphs])
    ]
    assert squeezed[0] == squeezed[1]
    kept = "".join(token.decode() for tokens in raw_text.tokenize(broken).to_list() for token in tokens)
    assert kept == squeezed[1]


def test_one_text_is_broken_like_many_and_in_a_graph():
    paragraphs = [" ".join(SENTENCES), "Other. Text."]
    alone = [raw_text.break_sentences([text]).numpy().tolist() for text in paragraphs]
    assert raw_text.break_sentences(paragraphs).numpy().tolist() == alone[0] + alone[1]
    assert tf.function(raw_text.break_sentences)(tf.constant(paragraphs)).numpy().tolist() == alone[0] + alone[1]
    assert raw_text.break_sentences([]).shape == [0]
