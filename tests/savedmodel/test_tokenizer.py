"""`--tokenizer unicode` and `penn` in the signature `default`, and what a program needs for them."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.fast import BiLM
from elmo_tf.model.scalar_mix import build_mix
from elmo_tf.savedmodel import root, verification
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG, ONE_LAYER, run_python

# By tokenizer: sentences, and the tokens of each as they stand in it.
SPLIT = {
    "unicode": {
        '"Don\'t," she said: $3.50 (in 1999).': '" Don \'t , " she said : $ 3.50 ( in 1999 ) .',
        "": "",
        "naïve 日本語のテキスト": "naïve 日 本 語 の テ キ ス ト",
        "U.S.\u00a0well-known\u2028thing": "U.S. well-known thing",
        b"bad \xff.": b"bad \xff .",
        "\0 a\0b": "a b",
    },
    "penn": {
        "\u201cIt\u2019s na\u00efve,\u201d he said.": "\u201c It \u2019s na\u00efve , \u201d he said .",
        "": "",
        "a b": "a b",
    },
}


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize("tokenizer", SPLIT)
def test_each_vector_has_its_token_and_its_bytes_in_the_sentence(tokenizer):
    """Of the object that an export saves."""
    model = root.build_root(BiLM(ONE_LAYER), build_mix(2, "average", 1.0), tokenizer)
    sentences = list(map(as_bytes, SPLIT[tokenizer]))
    pieces = [as_bytes(text).split(b" ") if text else [] for text in SPLIT[tokenizer].values()]
    lengths, longest = [len(row) for row in pieces], max(map(len, pieces))
    outputs = model.default(strings=tf.constant(sentences))
    assert (outputs["offsets"].dtype, outputs["offsets"].shape) == (tf.int32, (len(sentences), longest, 2))
    straight = {"\u201c".encode(): b'"', "\u201d".encode(): b'"', "\u2019s".encode(): b"'s"}
    for sentence, row, tokens, offsets in zip(
        sentences, pieces, outputs["tokens"].numpy().tolist(), outputs["offsets"].numpy().tolist(), strict=True
    ):
        padding = longest - len(row)
        assert tokens == [straight.get(piece, piece) for piece in row] + [b""] * padding
        assert [sentence[begin:end] for begin, end in offsets] == row + [b""] * padding
        assert offsets[len(row) :] == [[0, 0]] * padding
    nothing = model.default(strings=tf.constant([b""]))
    assert (nothing["tokens"].shape, nothing["offsets"].shape) == ((1, 0), (1, 0, 2))
    ready = model.tokens(tokens=outputs["tokens"], sequence_len=tf.constant(lengths))
    np.testing.assert_array_equal(outputs["elmo"], ready["elmo"])
    assert "offsets" not in ready


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["penn", "unicode"])
def test_a_fresh_process_computes_the_same_and_may_split_by_another_tokenizer(tmp_path, tokenizer):
    bilm = checks.randomize(BiLM(MICRO), scale=0.4)
    folder = checks.export_unverified(bilm, MICRO_CONFIG, tmp_path / "micro", tokenizer=tokenizer)
    assert verification.problems_in_fresh_process(folder) == []
    program = "import sys, elmo_tf; print(elmo_tf.load(sys.argv[1], tokenizer='whitespace').encode(['a b,'])[0].tokens)"
    assert run_python("-c", program, folder).stdout == "['a', 'b,']\n"
