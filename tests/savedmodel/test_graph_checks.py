"""What the signatures refuse, and in which words."""

import pytest
import tensorflow as tf

from tests.helpers import batch_char_ids

IDS = batch_char_ids([[b"a", b"bank"], [b"a"]], 3)


def changed(index, value):
    """Returns IDS with another value at one place."""
    ids = IDS.copy()
    ids[index] = value
    return ids


def call(model, name, **inputs):
    return model.signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})


WORDS = [[b"a", b"bank"], [b"a", b""]]
SAME_ROWS = "tokens, sequence_len: expected the same number of rows in each"
MIXED = "char_ids: expected rows with no id 0 (tokens) or only the id 0 (padding), found a row with both"
GAP = "char_ids: expected padding only after the last token of a sentence, found some before a token"
WRONG = [
    ("default", {"strings": b"a"}, r"strings: expected shape [batch], found []"),
    ("default", {"strings": [[b"a"], [b"b"]]}, r"strings: expected shape [batch], found [2 1]"),
    ("tokens", {"tokens": [b"a"], "sequence_len": [1]}, "tokens: expected shape [batch, max_length], found [1]"),
    ("tokens", {"tokens": WORDS, "sequence_len": [[2], [1]]}, "sequence_len: expected shape [batch], found [2 1]"),
    ("tokens", {"tokens": WORDS, "sequence_len": [2]}, f"{SAME_ROWS}, found [2 1]"),
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
