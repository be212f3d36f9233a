"""`--tokenizer unicode` and `penn` in the signature `default`, and what a program needs for them."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.bilm import BiLM
from elmo_tf.model.scalar_mix import build_mix
from elmo_tf.savedmodel import root, verification
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG, run_python

TEXT = [
    '"Don\'t," she said: $3.50 (in 1999).',
    "",
    "naïve 日本語のテキスト",
    "U.S.\u00a0well-known\u2028thing",
    b"bad \xff.",
    "\0 a\0b",
]
TOKENS = [
    ['"', "Don", "'t", ",", '"', "she", "said", ":", "$", "3.50", "(", "in", "1999", ")", "."],
    [],
    ["naïve", *"日本語のテキスト"],
    ["U.S.", "well-known", "thing"],
    ["bad", b"\xff", "."],
    ["a", "b"],
]


def as_bytes(text):
    return text.encode() if isinstance(text, str) else text


@pytest.fixture(scope="module")
def unicode_model(tmp_path_factory):
    """A model with the tokenizer `unicode`."""
    bilm = checks.randomize(BiLM(MICRO), scale=0.4)
    folder = tmp_path_factory.mktemp("unicode") / "micro"
    return checks.export_unverified(bilm, MICRO_CONFIG, folder, tokenizer="unicode")


def test_each_vector_has_its_token_and_its_bytes_in_the_sentence():
    """Of the object that an export saves."""
    bilm, strings = BiLM(MICRO), [as_bytes(text) for text in TEXT]
    model = root.build_root(bilm, build_mix(3, "average", 1.0), "unicode")
    outputs = model.default(strings=tf.constant(strings))
    longest = max(map(len, TOKENS))
    assert (outputs["offsets"].dtype, outputs["offsets"].shape) == (tf.int32, (len(TEXT), longest, 2))
    for sentence, words, tokens, offsets in zip(
        strings, TOKENS, outputs["tokens"].numpy().tolist(), outputs["offsets"].numpy().tolist(), strict=True
    ):
        assert tokens == [as_bytes(word) for word in words] + [b""] * (longest - len(words))
        assert [sentence[begin:end] for begin, end in offsets] == tokens
        assert offsets[len(words) :] == [[0, 0]] * (longest - len(words))
    nothing = model.default(strings=tf.constant([b""]))
    assert (nothing["tokens"].shape, nothing["offsets"].shape) == ((1, 0), (1, 0, 2))
    ready = model.tokens(tokens=tf.constant([[b"a b", b""]]), sequence_len=tf.constant([1]))
    assert ready["tokens"].numpy().tolist() == [[b"a b", b""]]
    assert "offsets" not in ready


def test_penn_splits_raw_sentences_and_tells_each_words_bytes():
    """Of the object that an export saves."""
    bilm, sentence = BiLM(MICRO), "\u201cIt\u2019s na\u00efve,\u201d he said.".encode()
    model = root.build_root(bilm, build_mix(3, "average", 1.0), "penn")
    outputs = model.default(strings=tf.constant([sentence, b"", b"a b"]))
    words = ['"', "It", "'s", "na\u00efve", ",", '"', "he", "said", "."]
    assert outputs["tokens"].numpy().tolist() == [
        [as_bytes(word) for word in words],
        [b""] * len(words),
        [b"a", b"b", *[b""] * (len(words) - 2)],
    ]
    assert (outputs["offsets"].dtype, outputs["offsets"].shape) == (tf.int32, (3, len(words), 2))
    in_sentence = ["\u201c", "It", "\u2019s", "na\u00efve", ",", "\u201d", "he", "said", "."]
    offsets = outputs["offsets"].numpy()
    assert [sentence[begin:end].decode() for begin, end in offsets[0]] == in_sentence
    assert offsets[2].tolist() == [[0, 1], [2, 3], *[[0, 0]] * (len(words) - 2)]
    same = model.tokens(tokens=outputs["tokens"], sequence_len=tf.constant([len(words), 0, 2]))
    np.testing.assert_array_equal(outputs["elmo"][0], same["elmo"][0])


@pytest.mark.slow
def test_a_program_that_knows_only_tensorflow_loads_penn(tmp_path):
    bilm = checks.randomize(BiLM(MICRO), scale=0.4)
    folder = checks.export_unverified(bilm, MICRO_CONFIG, tmp_path / "micro", tokenizer="penn")
    assert verification.problems_in_fresh_process(folder) == []


@pytest.mark.slow
def test_a_fresh_process_that_imports_tensorflow_text_computes_the_same(unicode_model):
    assert verification.problems_in_fresh_process(unicode_model) == []


@pytest.mark.slow
def test_a_fresh_process_loads_it_with_another_tokenizer(unicode_model):
    program = "import sys, elmo_tf; print(elmo_tf.load(sys.argv[1], tokenizer='whitespace').encode(['a b,'])[0].tokens)"
    assert run_python("-c", program, unicode_model).stdout == "['a', 'b,']\n"
