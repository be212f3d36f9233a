"""F1 of semantic roles."""

from elmo_tf.tasks.scores import srl_eval


def test_the_predicate_does_not_count_and_continuations_belong_to_what_they_continue():
    tags = ["B-A0", "B-V", "B-C-V", "B-A1", "I-A1", "O", "B-C-A1", "B-R-A0", "B-C-A2"]
    assert srl_eval.arguments_of(tags) == [
        ("A0", ((0, 1),)),
        ("A1", ((3, 5), (6, 7))),
        ("R-A0", ((7, 8),)),
        ("C-A2", ((8, 9),)),
    ]


def test_an_argument_is_right_with_its_label_and_all_of_its_tokens():
    gold = [["B-A0", "B-V", "B-A1", "B-C-A1"], ["B-V", "B-A1"]]
    predicted = [["B-A0", "B-V", "B-A1", "O"], ["B-V", "B-A2"]]
    counts = srl_eval.score(gold, predicted)
    assert (counts.precise, counts.predicted, counts.gold) == (1, 3, 3)
    assert counts.scores() == {"recall": 100 / 3, "precision": 100 / 3, "f1": 100 / 3}
    assert srl_eval.score([["O"]], [["O"]]).f1 == 0
