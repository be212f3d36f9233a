"""What the signatures refuse, in which words, and what odd input they take by rule."""

import numpy as np
import pytest
import tensorflow as tf

from tests import checks, reference
from tests.helpers import MICRO, batch_char_ids
from tests.savedmodel.calls import embed

IDS = batch_char_ids([[b"a", b"bank"], [b"a"]], 3)


def changed(place, value):
    """Returns IDS with another value at one place."""
    ids = IDS.copy()
    ids[place] = value
    return ids


def call(model, name, **inputs):
    return model.signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})


WORDS = [[b"a", b"bank"], [b"a", b""]]
TWO_ROWS = "sequence_len: expected 2 lengths, one for each row of tokens"
MIXED = "char_ids: expected rows with no id 0 (tokens) or only the id 0 (padding), found a row with both"
GAP = "char_ids: expected padding only after the last token of a sentence, found some before a token"
WRONG = [
    ("default", {"strings": b"a"}, r"strings: expected shape [batch], found []"),
    ("default", {"strings": [[b"a"], [b"b"]]}, r"strings: expected shape [batch], found [2 1]"),
    ("tokens", {"tokens": [b"a"], "sequence_len": [1]}, "tokens: expected shape [batch, max_length], found [1]"),
    ("tokens", {"tokens": WORDS, "sequence_len": [[2], [1]]}, "sequence_len: expected shape [batch], found [2 1]"),
    ("tokens", {"tokens": WORDS, "sequence_len": [2]}, f"{TWO_ROWS}, found 1"),
    ("tokens", {"tokens": WORDS, "sequence_len": [2, 3]}, "sequence_len: expected lengths from 0 to 2, found [3]"),
    ("tokens", {"tokens": WORDS, "sequence_len": [-1, 2]}, "sequence_len: expected lengths from 0 to 2, found [-1]"),
    ("char_ids", {"char_ids": IDS[0]}, "char_ids: expected shape [batch, max_length, 50], found [3 50]"),
    ("char_ids", {"char_ids": IDS[:, :, :49]}, "char_ids: expected shape [batch, max_length, 50], found [2 3 49]"),
    ("char_ids", {"char_ids": changed((0, 1, 2), 262)}, "char_ids: expected ids from 0 to 261, found 0 to 262"),
    ("char_ids", {"char_ids": changed((0, 1, 2), -1)}, "char_ids: expected ids from 0 to 261, found -1 to 261"),
    ("char_ids", {"char_ids": changed((1, 0, 49), 0)}, MIXED),
    ("char_ids", {"char_ids": changed((0, 0), 0)}, GAP),
]


@pytest.mark.parametrize(("name", "inputs", "message"), WRONG)
def test_wrong_arguments_are_refused_by_name(loaded, name, inputs, message):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call(loaded, name, **inputs)
    assert message in caught.value.message


ODD = [
    b"\xff\xfe bad \xc3",
    b"na\xefve in Latin-1",
    b"\x01\x02\x1f\x7f control \x1b[0m",
    b"a\x00b \x00 \x00\x00",
    b"one\rtwo\r\nthree\x0bfour\x0cfive",
    "no\u00a0break no\u2028break \u3000 \ufeff".encode(),
    "שלום עולם \u202eright to left\u202c".encode(),
    "e\u0301 u\u0308\u0323 \u0301".encode(),
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈".encode(),
    b"<S> </S> <S>x",
    b"x" * 2**20 + b" " + b"y" * 47 + "é".encode() + b" end",
    b"",
    b" \t\n\r\x0b\x0c",
]


def test_only_ascii_white_space_splits_a_sentence_and_all_other_bytes_are_kept(loaded, savedmodel):
    found = embed(loaded, ODD)
    weights = reference.weights_of(savedmodel.bilm)
    for row, sentence in enumerate(ODD):
        words = sentence.split()
        assert found["mask"][row].sum() == len(words)
        if words:
            expected = reference.layers(weights, MICRO, words)
            np.testing.assert_allclose(found["layers"][row, :, : len(words)], expected, **checks.TOLERANCE)
        assert not found["layers"][row, :, len(words) :].any()
