"""Scores of tasks: MUC, B-cubed and CEAFe on the examples of the papers that define them, of answers and of roles."""

import pytest

from elmo_tf.tasks.scores import coref_eval, squad_eval, srl_eval
from elmo_tf.tasks.scores.f1 import Counts


def clusters(*letters: str) -> list[list[tuple[int, int]]]:
    """Returns clusters of mentions that are called by letters."""
    return [[(ord(letter), ord(letter) + 1) for letter in cluster] for cluster in letters]


# Bagga and Baldwin 1998: the key, and a response that joins two of its clusters.
KEY = clusters("abcde", "fg", "hijkl")


@pytest.mark.parametrize(
    ("response", "muc", "bcub"), [(("abcde", "fghijkl"), 90, 16 / 21), (("abcdehijkl", "fg"), 90, 7 / 12)]
)
def test_muc_and_b_cubed_of_the_example_that_compares_them(response, muc, bcub):
    counts = coref_eval.score([KEY], [clusters(*response)])
    assert counts["muc"].recall == counts["bcub"].recall == 100
    assert counts["muc"].precision == pytest.approx(muc)
    assert counts["bcub"].precision == pytest.approx(100 * bcub)


def test_ceafe_matches_clusters_one_to_one():
    counts = coref_eval.score([KEY], [clusters("abcde", "fghijkl")])["ceafe"]
    likeness = 1 + 2 * 5 / (5 + 7)
    assert counts.recall == pytest.approx(100 * likeness / 3)
    assert counts.precision == pytest.approx(100 * likeness / 2)


def test_documents_are_added_before_dividing():
    counts = coref_eval.score([KEY, clusters("ab")], [clusters("abcde", "fg", "hijkl"), []])
    sums = {name: (count.gold, count.predicted) for name, count in counts.items()}
    assert sums == {"muc": (10, 9), "bcub": (14, 12), "ceafe": (4, 3)}
    assert all(count.precision == 100 for count in counts.values())
    assert counts["muc"].recall == pytest.approx(90)
    mean = sum(2 * 100 * recall / (100 + recall) for recall in (90, 100 * 12 / 14, 75)) / 3
    assert coref_eval.average_f1(counts) == pytest.approx(mean)


def test_repeated_mentions_count_as_in_the_official_scorer():
    """The numbers are those of reference-coreference-scorers 8.01 for these clusters."""
    key = [[(0, 2), (2, 3)], [(3, 4), (4, 5), (5, 6)]]
    response = [[(0, 2), (0, 2), (2, 3)], [(2, 3), (3, 4), (4, 5), (4, 5), (6, 7)], [(3, 4), (5, 6), (6, 7), (6, 7)]]
    counts = coref_eval.score([key], [response])
    assert counts["muc"] == Counts(2, 3, 2, 5)
    assert (counts["bcub"].gold, counts["bcub"].predicted) == (5, 8)
    assert counts["bcub"].recalled == counts["bcub"].precise == pytest.approx(11 / 3)
    assert counts["ceafe"].recalled == pytest.approx(5 / 3)
    assert (counts["ceafe"].gold, counts["ceafe"].predicted) == (2, 3)


def test_mentions_that_the_other_side_lacks_count_nothing():
    counts = coref_eval.score([clusters("ab")], [clusters("cd", "e")])
    assert [count.f1 for count in counts.values()] == [0, 0, 0]
    assert counts["bcub"].predicted == 3


def test_case_punctuation_articles_and_spaces_do_not_count():
    assert squad_eval.normalized("The  U.S. (an Area)") == "us area"


def test_the_best_answer_counts_and_an_empty_one_is_wrong():
    gold = [["the cat", "a big cat"], ["Paris"], ["no"], ["a dog"]]
    scores = squad_eval.score(gold, ["Big cat!", "in Paris", "", "cats"])
    assert scores["exact_match"] == 25
    assert scores["f1"] == pytest.approx((1 + 2 / 3) * 25)


def test_unanswerable_questions_are_scored_as_by_the_script_of_squad_2():
    gold = [["the cat"], [], ["Paris"], []]
    spans = ["cat", "dog", "in Paris", "fish"]
    scores = squad_eval.score_with_unanswerable(gold, spans, [0.1, 0.9, 0.6, 0.2])
    # By the probability of no answer: "cat" is right, "fish" wrong, "in Paris" has an F1 of 2/3, "dog" is wrong.
    at_half = dict.fromkeys(("exact_match", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1"), 50)
    best = {"best_exact": 75, "best_exact_thresh": 0.1, "best_f1": 75, "best_f1_thresh": 0.1}
    assert scores == pytest.approx(at_half | best)


def test_characters_count_in_their_longest_common_run():
    """By the evaluation of CMRC 2018: 3 of 4 found, 3 of 5 expected; case and punctuation do not count."""
    assert squad_eval.f1_of_characters("北京大學", "在北京大的") == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert squad_eval.score([["nba"]], ["《NBA》"], by_characters=True)["exact_match"] == 100
    # Words of another script count whole.
    assert squad_eval.f1_of_characters("New York市", "york市") == pytest.approx(2 * 2 / 3 / (2 / 3 + 1))
    assert squad_eval.f1_of_characters("東", "西") == 0
    texts = ("東京 NBA", "東京 tower", "12", "", "東京タワー12")
    assert [text for text in texts if squad_eval.is_without_spaces(text)] == ["東京タワー12"]


def test_the_predicate_does_not_count_and_continuations_belong_to_what_they_continue():
    tags = ["B-A0", "B-V", "B-C-V", "B-A1", "I-A1", "O", "B-C-A1", "B-R-A0", "B-C-A2"]
    arguments = [("A0", ((0, 1),)), ("A1", ((3, 5), (6, 7))), ("R-A0", ((7, 8),)), ("C-A2", ((8, 9),))]
    assert srl_eval.arguments_of(tags) == arguments


def test_an_argument_is_right_with_its_label_and_all_of_its_tokens():
    gold = [["B-A0", "B-V", "B-A1", "B-C-A1"], ["B-V", "B-A1"]]
    predicted = [["B-A0", "B-V", "B-A1", "O"], ["B-V", "B-A2"]]
    counts = srl_eval.by_label(gold, predicted)
    assert counts == {"A0": Counts(1, 1, 1, 1), "A1": Counts(0, 2, 0, 1), "A2": Counts(0, 0, 0, 1)}
    total = sum(counts.values(), Counts())
    assert total.scores() == {"recall": 100 / 3, "precision": 100 / 3, "f1": 100 / 3}
    assert Counts().f1 == 0
