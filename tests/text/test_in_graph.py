"""The exported model's own splitting and character ids: those of NumPy and Python, token by token."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.text import char_ids, in_graph

NASTY = [
    b"",
    b"a",
    *(b"x" * length for length in (47, 48, 49, 200)),
    b"a" * 47 + "é".encode(),  # cut inside a character
    "日本語の長い単語がここにあります本当に".encode(),
    "naïve".encode(),
    b"\x00",
    b"\x00a\x00\x00",
    b"\x01\x02\x1f\x7f",
    b"\xff\xfe\x80",
    bytes(range(0, 40)),
    bytes(range(216, 256)),
    *b"<S> </S> <UNK> <S <s> a<S> <S>\x00 </S></S>".split(),
    b" ",
]


def encode(sentences: list[list[bytes]], lengths: list[int], *max_chars: int) -> np.ndarray:
    return in_graph.encode_tokens(tf.constant(sentences), tf.constant(lengths, tf.int32), *max_chars).numpy()


@pytest.mark.parametrize("max_chars", [50, 7])
def test_ids_are_those_of_numpy(max_chars):
    ids = encode([NASTY, NASTY[::-1]], [len(NASTY)] * 2, max_chars)
    assert ids.dtype == np.int32
    np.testing.assert_array_equal(ids, [char_ids.encode_tokens(row, max_chars) for row in (NASTY, NASTY[::-1])])


@pytest.mark.parametrize("length", [0, 1, 3, 4, 9])
def test_all_ids_right_of_a_sentences_length_are_0_and_none_left_of_it(length):
    tokens = [b"", b"<S>", b"a", b"\x00"]
    (ids,) = encode([tokens], [length])
    expected = char_ids.encode_tokens(tokens)
    expected[length:] = 0
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" \t\r\n\x0b\x0c",
        b"one",
        b"  one \t two\r\nthree\x0bfour\x0cfive  ",
        *(f"no{space}break here".encode() for space in "\u00a0\u3000\u2003\u2028\u0085\ufeff"),
        *(b"one%cthing more" % byte for byte in range(1, 33)),
        b"zero\x00byte \x00 alone",
        b"latin\xa0one \x85 \xff",
    ],
)
def test_sentences_are_split_on_ascii_white_space_as_bytes_are(text):
    expected = text.split()
    tokens, lengths = in_graph.split(tf.constant([b"a b c d e f", text]))
    assert tokens.numpy()[1].tolist() == expected + [b""] * (6 - len(expected))
    assert lengths.dtype == tf.int32
    assert lengths.numpy().tolist() == [6, len(expected)]


@pytest.mark.parametrize("tokenizer", ["whitespace", "unicode", "characters"])
@pytest.mark.parametrize("sentences", [[], [b""], [b"", b" \n\0"]])
def test_nothing_to_split_gives_no_tokens(sentences, tokenizer):
    sentences = [text.rstrip(b"\0") for text in sentences] if tokenizer == "whitespace" else sentences
    tokens, lengths = in_graph.split(tf.constant(sentences, tf.string), tokenizer)
    assert tokens.shape == (len(sentences), 0)
    assert (lengths.dtype, lengths.numpy().tolist()) == (tf.int32, [0] * len(sentences))
    assert in_graph.encode_tokens(tokens, lengths).shape == (len(sentences), 0, 50)
