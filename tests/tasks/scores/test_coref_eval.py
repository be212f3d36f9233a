"""MUC, B-cubed and CEAFe on the examples of the papers that define them."""

import pytest

from elmo_tf.tasks.scores import coref_eval


def clusters(*sizes: str) -> list[list[tuple[int, int]]]:
    """Returns clusters of mentions that are called by letters."""
    return [[(ord(letter), ord(letter) + 1) for letter in one] for one in sizes]


# Bagga and Baldwin 1998: the key, and a response that joins two of its clusters.
KEY = clusters("abcde", "fg", "hijkl")


@pytest.mark.parametrize(
    ("response", "muc", "bcub"), [(("abcde", "fghijkl"), 90, 16 / 21), (("abcdehijkl", "fg"), 90, 7 / 12)]
)
def test_muc_and_b_cubed_of_the_example_that_compares_them(response, muc, bcub):
    found = coref_eval.score([KEY], [clusters(*response)])
    assert found["muc"].recall == found["bcub"].recall == 100
    assert found["muc"].precision == pytest.approx(muc)
    assert found["bcub"].precision == pytest.approx(100 * bcub)


def test_ceafe_matches_clusters_one_to_one():
    counts = coref_eval.score([KEY], [clusters("abcde", "fghijkl")])["ceafe"]
    likeness = 1 + 2 * 5 / (5 + 7)
    assert counts.recall == pytest.approx(100 * likeness / 3)
    assert counts.precision == pytest.approx(100 * likeness / 2)


def test_documents_are_added_before_dividing():
    found = coref_eval.score([KEY, clusters("ab")], [clusters("abcde", "fg", "hijkl"), []])
    assert {name: (one.gold, one.predicted) for name, one in found.items()} == {
        "muc": (10, 9),
        "bcub": (14, 12),
        "ceafe": (4, 3),
    }
    assert all(one.precision == 100 for one in found.values())
    assert found["muc"].recall == pytest.approx(90)
    mean = sum(2 * 100 * recall / (100 + recall) for recall in (90, 100 * 12 / 14, 75)) / 3
    assert coref_eval.average_f1(found) == pytest.approx(mean)


def test_mentions_that_the_other_side_lacks_count_nothing():
    found = coref_eval.score([clusters("ab")], [clusters("cd", "e")])
    assert [one.f1 for one in found.values()] == [0, 0, 0]
    assert found["bcub"].predicted == 3
