"""Characters as tokens: by the rule, and the same in Python and in the graph."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import random
import unicodedata

import numpy as np
import tensorflow as tf

from elmo_tf.text import characters, in_graph

TEXTS = {
    "MKV LLA*x\r\n": "M K V L L A * x",
    "": "",
    " \t\u00a0\u3000\0\x85": "",
    "e\u0301te\u0301": "e\u0301 t e\u0301",  # a combining mark stays with its letter
    "a \u0301\u0302b": "a \u0301\u0302 b",  # but not with a space
    "\u0301a": "\u0301 a",
    "हिन्दी": "हि न् दी",
    "ภาษาไทย": "ภ า ษ า ไ ท ย",
    "할\u1112\u1161": "할 \u1112 \u1161",
    "می\u200cخوا": "م ی\u200c خ و ا",
    "中文，か\u3099": "中 文 ， か\u3099",
    "👩\u200d💻a": "👩\u200d 💻 a",
    "שָׁלוֹם": "שָׁ ל וֹ ם",
    "b\ufeffa\U000e0100": "b \ufeff a\U000e0100",
}


def in_the_graph(texts: list[str | bytes]) -> tuple[list[list[bytes]], list[np.ndarray]]:
    split = tf.function(lambda sentences: in_graph.split_with_offsets(sentences, "characters"))
    tokens, lengths, offsets = (tensor.numpy() for tensor in split(tf.constant(texts, tf.string)))
    assert not offsets[np.arange(offsets.shape[1]) >= lengths[:, None]].any()
    return [row[:n].tolist() for row, n in zip(tokens, lengths, strict=True)], [
        row[:n] for row, n in zip(offsets, lengths, strict=True)
    ]


def test_a_character_is_a_code_point_with_its_marks():
    assert [characters.split(text.encode()) for text in TEXTS] == [text.encode().split() for text in TEXTS.values()]


def test_the_graph_splits_as_python_does_and_offsets_cut_the_tokens():
    choose = random.Random(0)
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    marks = [point for point in points if unicodedata.category(point)[0] == "M"]
    alphabets = (points, points[:0x3000], ["a", " ", "\u200d", "\u00a0", *marks[::20]])
    made = ["".join(choose.choices(alphabets[n % 3], k=choose.randrange(60))) for n in range(900)]
    texts = [text.encode() for text in [*TEXTS, *made]]
    tokens, offsets = in_the_graph(texts)
    assert tokens == list(map(characters.split, texts))
    assert tokens == [[text[begin:end] for begin, end in ranges] for text, ranges in zip(texts, offsets, strict=True)]


def test_bytes_that_are_not_utf8_become_replacement_characters():
    text = b"\xff\xfea\xe4\xb8"
    (tokens,), (offsets,) = in_the_graph([text])
    assert tokens == characters.split(text) == ["\ufffd".encode()] * 2 + [b"a", "\ufffd".encode()]
    assert offsets.tolist() == [[0, 1], [1, 2], [2, 3], [3, 5]]
