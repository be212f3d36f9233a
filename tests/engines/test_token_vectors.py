"""Token vectors that are remembered from call to call, in bounded memory."""

import concurrent.futures
import pickle
import random

import numpy as np
import pytest

import elmo_tf
from elmo_tf.engines import token_vectors
from elmo_tf.text import char_ids
from tests.helpers import MICRO

DIM = MICRO.lstm.projection_dim


def expected(tokens: list[bytes]) -> np.ndarray:
    """The sum of a token's character ids, in each column."""
    sums = char_ids.encode_tokens(tokens, MICRO.char_cnn.max_chars_per_token).sum(1)
    return np.repeat(sums[:, None], DIM, 1).astype(np.float32)


def remembering() -> tuple[token_vectors.TokenVectors, list[int]]:
    """Returns vectors, and a list that gets the number of tokens of each computation."""
    computed: list[int] = []

    def compute(ids: np.ndarray) -> np.ndarray:
        computed.append(len(ids))
        return np.repeat(ids.sum(1)[:, None], DIM, 1)

    return token_vectors.TokenVectors(compute, MICRO), computed


def test_a_token_is_computed_once_for_all_calls():
    vectors, computed = remembering()
    for tokens in ([b"cat", b"a"], [b"dog", b"a", b"cat"], [b"cat"]):
        np.testing.assert_array_equal(vectors(tokens), expected(tokens))
    assert computed == [2, 1]


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(token_vectors, "MAX_TOKENS", 2)
    vectors, computed = remembering()
    for _ in range(2):
        for tokens in ([b"x" * 1000], [b"a", b"b"], [b"c", b"a"]):
            np.testing.assert_array_equal(vectors(tokens), expected(tokens))
    assert computed == [1, 2, 1, 1, 1]


def test_several_threads_remember_at_the_same_time():
    (vectors, _), choose = remembering(), random.Random(0)
    words = [b"%d" % number for number in range(3000)]
    calls = [choose.sample(words, 100) for _ in range(200)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for call, computed in zip(calls, pool.map(vectors, calls), strict=True):
            np.testing.assert_array_equal(computed, expected(call))


@pytest.mark.parametrize("engine", ["numpy", "tensorflow"])
def test_a_second_call_uses_them_and_a_copy_in_another_process_does_not_get_them(engine, monkeypatch):
    computed: list[int] = []
    encode_tokens = char_ids.encode_tokens
    monkeypatch.setattr(
        token_vectors.char_ids,
        "encode_tokens",
        lambda tokens, *size: computed.append(len(tokens)) or encode_tokens(tokens, *size),
    )
    model = elmo_tf.load("english", engine=engine)
    (first,) = model.encode(["the cat sat on the mat"])
    (second,) = model.encode(["the cat sat on the mat"])
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert computed == [7]  # five words, <S> and </S>
    (third,) = model.without_memory().encode(["the cat sat on the mat"])
    np.testing.assert_array_equal(first.vectors, third.vectors)
    model.encode(["the mat"])
    assert computed == [7, 7]
    assert len(pickle.dumps(model)) < 10_000
