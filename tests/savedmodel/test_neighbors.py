"""The nearest uses of words among vectors: which there are, how near, in what order, and what is refused."""

import random

import numpy as np
import pytest

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import neighbors
from tests import checks

QUERY = neighbors.Query([b"the", b"bank", b"of", b"the", b"river"], 1)


def text(count: int, seed: int = 0) -> list[tuple[int, list[bytes], np.ndarray]]:
    """Returns lines of random words with random vectors; some lines come twice."""
    choose, draw = random.Random(seed), np.random.default_rng(seed)
    lines = []
    for number in range(count):
        if number % 5 == 4:
            _, words, vectors = lines[number // 2]
        else:
            words = [choose.choice([b"bank", b"money", b"na\xc3\xafve"]) for _ in range(choose.randrange(7))]
            words.append(b"%d" % number)
            vectors = draw.normal(size=(len(words), 4)).astype(np.float32)
        lines.append((number, words, vectors))
    return lines


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


@pytest.mark.parametrize("same_word", [False, True])
@pytest.mark.parametrize("count", [1, 7, 500])
def test_the_best_use_of_each_sentence_is_found_best_first(same_word, count):
    lines, target = text(200), np.array([1, -2, 0.5, 3], np.float32)
    found = neighbors.nearest_uses(QUERY, target, lines, count, same_word)
    mean = np.concatenate([vectors for _, _, vectors in lines]).astype(np.float64).mean(axis=0)
    best = {}
    for number, words, vectors in lines:
        places = [place for place, word in enumerate(words) if word == b"bank" or not same_word]
        if places and tuple(words) not in best:
            place = max(places, key=lambda place: cosine(vectors[place] - mean, target - mean))
            best[tuple(words)] = (-cosine(vectors[place] - mean, target - mean), number, list(words), place)
    expected = sorted(best.values())[:count]
    assert [(use.line, [word.encode() for word in use.sentence], use.position) for use in found] == [
        use[1:] for use in expected
    ]
    np.testing.assert_allclose([use.similarity for use in found], [-use[0] for use in expected], **checks.FEW)


def test_the_querys_own_sentence_is_left_out_and_the_mean_itself_is_no_error():
    one = np.ones((1, 4), np.float32)
    lines = [
        (0, list(QUERY.sentence), np.concatenate([one, -one, one, -one, 0 * one])),
        (1, [], one[:0]),
        (2, [b"a"], one),
        (3, [b"b"], -one),
        (4, [b"c"], 0 * one),
    ]
    found = neighbors.nearest_uses(QUERY, one[0], lines)
    assert [(use.similarity, use.line) for use in found] == [(1, 2), (0, 4), (-1, 3)]


def test_the_mean_is_of_the_start_of_a_long_text():
    vectors = np.array([[1, 0], [-1, 0]] * (neighbors.MEAN_TOKENS // 2), np.float32)
    lines = [(0, [b"a"] * len(vectors), vectors), (1, [b"b"], np.array([[0, 1e9]], np.float32))]
    found = neighbors.nearest_uses(QUERY, np.array([0, 1], np.float32), iter(lines))
    assert [(use.similarity, use.line) for use in found] == [(1, 1), (0, 0)]


def test_half_precision_vectors_are_compared_in_full():
    # float16 cannot hold their squares, nor their sum.
    vectors = np.full((2, 600), 200, np.float16) * np.array([[1], [-1]], np.float16)
    lines = [(place, [b"a%d" % place], vectors[place : place + 1]) for place in range(2)]
    found = neighbors.nearest_uses(QUERY, vectors[0].astype(np.float32), lines)
    assert [use.similarity for use in found] == pytest.approx([1, -1], abs=checks.rounding(600))


def test_a_query_is_the_word_at_its_position():
    assert neighbors.find_query("the", "the bank\tof the") == ([b"the", b"bank", b"of", b"the"], 0)
    assert neighbors.find_query("the", "the bank of the", 3).position == 3
    assert neighbors.find_query("no\u00a0break", "is no\u00a0break here").word == "no\u00a0break".encode()


@pytest.mark.parametrize(
    ("word", "sentence", "position", "message"),
    [
        ("the bank", "the bank", None, "sentence: expected the word 'the bank' in it, found 'the bank'"),
        ("", "the bank", None, "sentence: expected the word '' in it"),
        ("Bank", "the bank", None, "sentence: expected the word 'Bank' in it"),
        ("b\udcff", "the bank", None, "sentence: expected the word 'b\\\\udcff' in it"),
        ("bank", "", None, "sentence: expected the word 'bank' in it, found ''"),
        ("a", "a b a", 1, r"position: expected one of \[0, 2\], the positions of 'a', found 1"),
    ],
)
def test_a_word_that_is_not_there_is_refused(word, sentence, position, message):
    with pytest.raises(InputError, match=f"^{message}"):
        neighbors.find_query(word, sentence, position)
