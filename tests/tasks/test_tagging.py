"""Systems that tag tokens: scores, training data, what a program asks with."""

import numpy as np
import pytest

from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.frames import Frame
from elmo_tf.tasks import ner, roles
from elmo_tf.tasks.scores.f1 import Counts

ROLES = roles.Task(roles.Task.recipes["small"])


def test_spans_are_scored_and_a_span_of_another_kind_is_wrong():
    examples = [Tagged(["a", "b", "c"], ["B-X", "I-X", "O"]), Tagged(["d"], ["B-Y"])]
    system = ner.Task(ner.Task.recipes["small"])
    assert system.labels_of(examples) == ["B-X", "L-X", "O", "U-Y"]
    scores = system.scores(examples, [["B-X", "I-X", "O"], ["B-X"]])
    assert scores == {"precision": 50, "recall": 50, "f1": 50}
    assert system.scores(examples, [["O"] * 3, ["O"]])["f1"] == 0
    assert system.to_json(examples[0], ["B-X", "I-X", "O"])["spans"] == [{"start": 0, "end": 2, "kind": "X"}]


def test_each_type_has_its_scores_and_no_tag_at_all_is_the_baseline():
    examples = [Tagged(["a", "b", "c"], ["B-X", "I-X", "B-Y"]), Tagged(["d", "e"], ["B-X", "O"])]
    system = ner.Task(ner.Task.recipes["small"])
    counts = system.by_label(examples, [["B-X", "I-X", "B-Z"], ["B-X", "I-X"]])
    assert counts == {"X": Counts(1, 2, 1, 2), "Y": Counts(0, 1, 0, 0), "Z": Counts(0, 0, 0, 1)}
    assert system.most_frequent(examples) == {"answer": "O", "f1": 0}
    gold = ["B-A0", "B-V", "B-A1", "B-C-A1"]
    frames = [Frame(["a", "b", "c", "d"], 1, gold)]
    assert ROLES.by_label(frames, [["B-A0", "O", "B-A1", "O"]]) == {"A0": Counts(1, 1, 1, 1), "A1": Counts(0, 1, 0, 1)}
    assert ROLES.most_frequent(frames) == {"answer": "O", "f1": 0}


def test_whole_arguments_are_scored_and_frequent_labels_by_themselves():
    gold = ["B-A0", "B-V", "B-A1", "B-C-A1"]
    examples = [Frame(["a", "b", "c", "d"], 1, gold)] * 100
    scores = ROLES.scores(examples, [["B-A0", "O", "O", "O"]] * 50 + [gold] * 50)
    f1, a1 = pytest.approx(600 / 7), pytest.approx(200 / 3)
    assert scores == {"precision": 100, "recall": 75, "f1": f1, "A0": 100, "A1": a1}
    assert ROLES.scores(examples[:1], [gold]) == {"precision": 100, "recall": 100, "f1": 100}
    assert ROLES.to_json(examples[0], gold)["spans"][-1] == {"start": 3, "end": 4, "kind": "C-A1"}


def test_roles_begin_with_a_b():
    system = roles.Task(ROLES.recipe, ["B-A0", "I-A0", "O"])
    scores = np.array([[[2, 9, 1], [0, 9, 1], [0, 9, 1]], [[2, 9, 3], [0, 0, 0], [0, 0, 0]]], np.float32)
    decoded = system.decode(None, {"scores": scores, "mask": np.array([[1, 1, 1], [1, 0, 0]], bool)})
    assert system.predict({"tags": decoded["tags"].numpy()}, []) == [["B-A0", "I-A0", "I-A0"], ["O"]]


def test_long_sentences_are_scored_but_not_trained_on():
    long, short = Frame(["a"] * 101, 0, ["B-V"] + ["O"] * 100), Frame(["a"] * 100, 0, ["B-V"] + ["O"] * 99)
    assert ROLES.examples([[long], [short]], training=True) == [short]
    assert ROLES.examples([[long], [short]], training=False) == [long, short]
