"""Systems that tag tokens: decoding against all sequences, one by one; scores; training data."""

import itertools

import numpy as np
import pytest

from elmo_tf.annotated import tag_schemes
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.frames import Frame
from elmo_tf.errors import InputError
from elmo_tf.tasks import batching, ner, roles
from elmo_tf.tasks.tagging import best_tags

TAGS = {
    "IOB2": ["B-X", "B-Y", "I-X", "I-Y", "O"],
    "BIOUL": ["B-X", "I-X", "L-X", "O", "U-X", "U-Y"],
    "without a begin": ["I-Z", "O"],
}
LENGTHS = [4, 2, 0, 1, 3]
ROLES = roles.Task(roles.Task.recipes["small"])


def allows(allowed, path) -> bool:
    steps = all(allowed.steps[pair] for pair in itertools.pairwise(path))
    return bool(allowed.begin[path[0]] and allowed.end[path[-1]] and steps)


@pytest.mark.parametrize("scheme", TAGS)
def test_the_best_of_all_allowed_sequences_is_found(scheme):
    tags = TAGS[scheme]
    allowed = tag_schemes.allowed(tags)
    scores = np.random.default_rng(0).normal(size=(len(LENGTHS), 4, len(tags)))
    found = best_tags(scores, LENGTHS, allowed)
    assert [len(path) for path in found] == LENGTHS
    for row, path in zip(scores, found, strict=True):
        paths = itertools.product(range(len(tags)), repeat=len(path))
        totals = {one: row[np.arange(len(one)), one].sum() for one in paths if not one or allows(allowed, one)}
        assert tuple(path) == max(totals, key=totals.get)
    # The constraints count.
    assert found != [row[:length].argmax(1).tolist() for row, length in zip(scores, LENGTHS, strict=True)]


def test_scores_of_minus_infinity_are_no_error():
    tags = TAGS["IOB2"]
    scores = np.full((1, 3, 5), -np.inf)
    scores[0, :, [2, 4]] = 0
    assert best_tags(scores, [3], tag_schemes.allowed(tags)) == [[4, 4, 4]]


def test_spans_are_scored_and_a_span_of_another_kind_is_wrong():
    examples = [Tagged(["a", "b", "c"], ["B-X", "I-X", "O"]), Tagged(["d"], ["B-Y"])]
    system = ner.Task(ner.Task.recipes["small"])
    assert system.labels_of(examples) == ["B-X", "L-X", "O", "U-Y"]
    found = system.scores(examples, [["B-X", "I-X", "O"], ["B-X"]])
    assert found == {"precision": 50, "recall": 50, "f1": 50}
    assert system.scores(examples, [["O"] * 3, ["O"]])["f1"] == 0
    assert system.to_json(examples[0], ["B-X", "I-X", "O"])["spans"] == [{"start": 0, "end": 2, "kind": "X"}]


def test_whole_arguments_are_scored_and_frequent_labels_by_themselves():
    gold = ["B-A0", "B-V", "B-A1", "B-C-A1"]
    examples = [Frame(["a", "b", "c", "d"], 1, gold)] * 100
    found = ROLES.scores(examples, [["B-A0", "O", "O", "O"]] * 50 + [gold] * 50)
    f1, a1 = pytest.approx(600 / 7), pytest.approx(200 / 3)
    assert found == {"precision": 100, "recall": 75, "f1": f1, "A0": 100, "A1": a1}
    assert ROLES.scores(examples[:1], [gold]) == {"precision": 100, "recall": 100, "f1": 100}
    assert ROLES.to_json(examples[0], gold)["spans"][-1] == {"start": 3, "end": 4, "kind": "C-A1"}


def test_long_sentences_are_scored_but_not_trained_on():
    long, short = Frame(["a"] * 101, 0, ["B-V"] + ["O"] * 100), Frame(["a"] * 100, 0, ["B-V"] + ["O"] * 99)
    assert ROLES.examples([[long], [short]], training=True) == [short]
    assert ROLES.examples([[long], [short]], training=False) == [long, short]


def test_the_length_of_an_example_is_that_of_its_longest_text():
    assert batching.length(ROLES, Frame(["a"] * 6, 0)) == 6


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("anna slept", "pairs of a sentence, a list of tokens, and the index of a predicate, found 'anna slept'"),
        ((("anna",), 1), "a predicate's index from 0 to 0, found 1"),
        ((("anna",), 0.0), "a predicate's index from 0 to 0, found 0.0"),
        (("anna", 0), "lists of tokens, none of them empty, found 'anna'"),
    ],
)
def test_roles_are_asked_for_with_a_sentence_and_an_index(item, message):
    with pytest.raises(InputError, match=f"^sentences: expected {message}$"):
        ROLES.example_of(item)
