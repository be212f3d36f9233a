"""Exact match and F1 of answers."""

import pytest

from elmo_tf.tasks.scores import squad_eval


def test_case_punctuation_articles_and_spaces_do_not_count():
    assert squad_eval.normalized("The  U.S. (an Area)") == "us area"


def test_the_best_answer_counts_and_a_missing_one_is_wrong():
    gold = {"1": ["the cat", "a big cat"], "2": ["Paris"], "3": ["no"], "4": ["a dog"]}
    found = squad_eval.score(gold, {"1": "Big cat!", "2": "in Paris", "4": "cats"})
    assert found["exact_match"] == 25
    assert found["f1"] == pytest.approx((1 + 2 / 3) * 25)
