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
    best = {}
    for number, words, vectors in lines:
        places = [place for place, word in enumerate(words) if word == b"bank" or not same_word]
        if places and tuple(words) not in best:
            place = max(places, key=lambda place: cosine(vectors[place], target))
            best[tuple(words)] = (-cosine(vectors[place], target), number, list(words), place)
    expected = sorted(best.values())[:count]
    assert [(use.line, [word.encode() for word in use.sentence], use.position) for use in found] == [
        use[1:] for use in expected
    ]
    np.testing.assert_allclose([use.similarity for use in found], [-use[0] for use in expected], **checks.FEW)


def test_the_querys_own_sentence_is_left_out_and_a_vector_of_zeros_is_no_error():
    vectors = np.ones((5, 4), np.float32)
    lines = [
        (0, list(QUERY.sentence), vectors),
        (1, [], vectors[:0]),
        (2, [b"a"], vectors[:1]),
        (3, [b"b"], 0 * vectors[:1]),
    ]
    found = neighbors.nearest_uses(QUERY, vectors[0], lines)
    assert [(use.similarity, use.line) for use in found] == [(1, 2), (0, 3)]


def test_half_precision_vectors_are_compared_in_full():
    # float16 cannot hold their squares.
    vectors = np.full((1, 600), 200, np.float16)
    (use,) = neighbors.nearest_uses(QUERY, vectors[0].astype(np.float32), [(0, [b"a"], vectors)])
    assert use.similarity == pytest.approx(1, abs=checks.rounding(600))


def test_a_query_is_the_word_where_it_stands():
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
