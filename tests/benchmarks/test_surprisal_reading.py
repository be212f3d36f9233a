"""How the words of the stories meet their tokens, sentences and reading times."""

import lzma
import math

import numpy as np
import pytest

from benchmarks import surprisal_reading
from benchmarks.surprisal_reading import Story


def test_stories_have_the_words_in_their_order_and_the_time_of_each(tmp_path):
    (tmp_path / "stories.tok").write_text("word\tzone\titem\n'No,\t1\t1\nsaid\t2\t1\nHe\t1\t2\n")
    with lzma.open(tmp_path / "processed_wordinfo.tsv.xz", "wt") as file:
        file.write("word\tzone\titem\tmeanItemRT\nHe\t1\t2\t3.5\nsaid\t2\t1\t2.5\n'No,\t1\t1\t1.5\n")
    assert surprisal_reading.read_stories(tmp_path) == [Story(["'No,", "said"], [1.5, 2.5]), Story(["He"], [3.5])]


def test_a_token_of_gpt3_counts_for_the_word_that_it_begins_in(tmp_path):
    tokens = [("A", ""), (" d", -1), ("og,", -2), (" \n", -8), (" Mr", -1), (".", -1)]
    with lzma.open(tmp_path / "all_stories_gpt3.csv.xz", "wt", newline="") as file:
        file.write("token,logprob,story\n" + "".join(f'"{token}",{value},0\n' for token, value in tokens))
    first, *bits = surprisal_reading.gpt3(tmp_path, [Story(["A", "dog,", "Mr."], [0, 0, 0])])
    assert math.isnan(first)
    assert bits == pytest.approx([3 / math.log(2), 2 / math.log(2)])


def test_words_are_dealt_to_sentences_with_their_quotes_and_abbreviations():
    words = ["'Come", "here!'", "Mr.", "Hill", "said.", "'Why?'", "I", "asked,", "and", "he", "left."]
    assert list(surprisal_reading.lines(words)) == [
        ["'Come", "here!'"],
        ["Mr.", "Hill", "said."],
        ["'Why?'"],
        ["I", "asked,", "and", "he", "left."],
    ]


def test_a_predictor_that_matters_gains_what_the_normal_distribution_says_and_noise_nothing():
    random = np.random.default_rng(0)
    base, cause, noise = random.normal(size=(3, 4000, 1))
    times = (300 + 10 * base + 3 * cause + 4 * random.normal(size=cause.shape))[:, 0]
    gains = surprisal_reading.gains(times, base, {"cause": cause, "noise": noise})
    assert gains["cause"].mean() == pytest.approx(math.log(5 / 4), abs=0.03)  # the deviation without it is 5
    assert gains["noise"].mean() == pytest.approx(0, abs=0.002)


def test_the_word_before_stands_beside_each_word():
    values = np.array([[1.0, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(
        surprisal_reading.with_word_before(values, np.array([1, 2])), [[3, 4, 1, 2], [5, 6, 3, 4]]
    )
