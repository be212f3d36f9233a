"""Answers to questions."""

import dataclasses
import itertools
import logging

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.annotated import squad
from elmo_tf.tasks import answers
from elmo_tf.tasks.answers import AnswerSpan, Task, best_spans
from elmo_tf.tasks.token_vectors import TokenVectors, word_table
from tests.tasks.small import EXAMPLES, asked, recipe_of

PARAGRAPH = "Anna (born in 1990) sat in\u00a0New York."
SYSTEM = Task(Task.recipes["small"])


def brute_force(start, end, max_length) -> tuple[tuple[int, int], float]:
    spans = [(a, b) for a, b in itertools.product(range(len(start)), repeat=2) if 0 <= b - a < max_length]
    weights = {(a, b): np.exp(start[a] + end[b]) for a, b in spans}
    best = min(spans, key=lambda span: (-start[span[0]] - end[span[1]], span[1] - span[0], span[0]))
    return best, weights[best] / sum(weights.values())


@pytest.mark.parametrize("max_length", [1, 3, 17])
def test_the_best_span_is_that_of_a_search_through_all(max_length):
    random = np.random.default_rng(0)
    lengths = np.array([1, 2, 3, 7, 20] * 10)
    # Whole numbers: some sums are equal.
    scores = np.where(np.arange(20) < lengths[:, None], random.integers(-3, 3, size=(2, 50, 20)), -1e9)
    spans = best_spans(*scores.astype(np.float32), max_length)
    rows = zip(*(spans[name].numpy() for name in ("first", "last", "probability")), strict=True)
    for (first, last, probability), start, end, length in zip(rows, *scores, lengths, strict=True):
        span, expected = brute_force(start[:length], end[:length], max_length)
        assert (first, last) == span
        assert probability == pytest.approx(expected, rel=1e-12)


def test_the_probabilities_of_several_answers_add_up():
    paragraph = squad.paragraph_of("a b c d")
    both = (squad.Answer("b", 2), squad.Answer("b c", 2), squad.Answer("d", 6))
    examples = [squad.question_of(paragraph, "?", answers=both), asked("a b", "?", "b")]
    targets = SYSTEM.targets(examples)
    assert targets["start"].tolist() == [[False, True, False, True], [False, True, False, False]]
    assert targets["end"].tolist() == [[False, True, True, True], [False, True, False, False]]
    scores = {name: np.random.default_rng(seed).normal(size=(2, 4)) for seed, name in enumerate(("start", "end"))}
    real = [[True] * 4, [True] * 2 + [False] * 2]
    outputs = {name: tf.constant(np.where(real, logits, -1e9)) for name, logits in scores.items()}
    expected = 0.0
    for name, logits in scores.items():
        for row, right, length in zip(np.exp(logits), targets[name], (4, 2), strict=True):
            expected -= np.log(row[right].sum() / row[:length].sum()) / 2
    assert float(SYSTEM.loss(None, outputs, targets)) == pytest.approx(expected, rel=1e-6)


def test_answers_are_scored_as_text_and_placed_in_the_paragraph():
    examples = [asked(PARAGRAPH, "Where?", "New York"), asked(PARAGRAPH, "When?", "in 1990")]
    spans = [AnswerSpan(8, 9, 0.5), AnswerSpan(4, 4, 0.25)]
    assert SYSTEM.scores(examples, spans) == {"exact_match": 50, "f1": pytest.approx((1 + 2 / 3) * 50)}
    expected = {"question": "Where?", "answer": "New York", "start": 27, "end": 35, "probability": 0.5}
    assert SYSTEM.to_json(examples[0], spans[0]) == expected


def impossible(paragraph: str, question: str) -> squad.Question:
    return dataclasses.replace(squad.question_of(squad.paragraph_of(paragraph), question), is_impossible=True)


def test_no_answer_competes_with_each_start_and_each_end():
    system = Task(SYSTEM.recipe, ["questions without an answer"])
    examples = [asked("a b c", "?", "b"), impossible("a b", "?")]
    targets = system.targets(examples)
    assert targets["none"].tolist() == [False, True]
    scores = {"start": [[1.0, 2, 3], [1, 2, -1e9]], "end": [[0.0, 1, 0], [2, 2, -1e9]], "none": [[0.5], [1.5]]}
    outputs = {name: tf.constant(values) for name, values in scores.items()}
    expected = 0.0
    for name in ("start", "end"):
        rows = np.exp(np.concatenate([scores[name], scores["none"]], 1))
        expected -= np.log(rows[0, 1] / rows[0].sum()) / 2 + np.log(rows[1, 3] / rows[1].sum()) / 2
    assert float(system.loss(None, outputs, targets)) == pytest.approx(expected, rel=1e-6)
    predictions = system.predict(
        {name: values.numpy() for name, values in system.decode(None, outputs).items()}, examples
    )
    spans = [(a, b) for a in range(3) for b in range(a, 3)]
    weights = [np.exp(scores["start"][0][a] + scores["end"][0][b]) for a, b in spans]
    assert predictions[0].no_answer == pytest.approx(np.e / (np.e + sum(weights)), rel=1e-6)
    assert predictions[0].probability == pytest.approx(max(weights) / (np.e + sum(weights)), rel=1e-6)


def test_a_question_whose_answer_is_unlikely_gets_none_and_scores_have_the_official_names():
    system = Task(SYSTEM.recipe, ["questions without an answer"])
    examples = [asked(PARAGRAPH, "Where?", "New York"), impossible(PARAGRAPH, "Who ate?")]
    spans = [AnswerSpan(8, 9, 0.5, 0.25), AnswerSpan(0, 0, 0.1, 0.75)]
    scores = system.scores(examples, spans)
    assert (scores["f1"], scores["HasAns_f1"], scores["NoAns_f1"], scores["best_f1"]) == (100, 100, 100, 100)
    answers = [system.to_json(*pair) for pair in zip(examples, spans, strict=True)]
    assert [(answer["answer"], answer["start"], answer["no_answer"]) for answer in answers] == [
        ("New York", 27, 0.25),
        ("", None, 0.75),
    ]
    assert SYSTEM.labels_of(examples) == system.labels
    # A system that was trained without such questions answers all of them.
    assert SYSTEM.scores(examples, [AnswerSpan(*span[:3]) for span in spans])["NoAns_f1"] == 0


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([("1990",), ("1990", "in 1990"), ("1991",)], ("1990", 200 / 3)), ([(), (), ("1990",)], ("no answer", 200 / 3))],
)
def test_the_most_frequent_answer_is_scored_as_if_it_were_given_to_all(answers, expected):
    paragraph = squad.paragraph_of("in 1990 or 1991")
    questions = [
        squad.Question(
            paragraph, "When?", ["When", "?"], None, tuple(squad.Answer(text, 0) for text in texts), not texts
        )
        for texts in answers
    ]
    system = Task(Task.paper_recipe())
    assert system.most_frequent(questions) == {"answer": expected[0], "f1": pytest.approx(expected[1])}


def test_unanswerable_questions_are_learned():
    examples = [*EXAMPLES["answers"][:2], impossible("Boris slept", "Who sang?")]
    system = Task(recipe_of("answers"), SYSTEM.labels_of(examples))
    table = word_table(system.recipe, [tokens for example in examples for tokens in system.texts(example)], [])
    network = system.network(TokenVectors(system.recipe, table, None))
    inputs, targets = system.inputs(examples), system.targets(examples)
    with tf.GradientTape() as tape:
        outputs = network(inputs, training=True)
        loss = system.loss(network, outputs, targets)
    gradient = tape.gradient(loss, network.get_layer("none").kernel.value)
    assert np.any(gradient)
    decoded = {name: tensor.numpy() for name, tensor in system.decode(network, outputs).items()}
    assert all(0 < prediction.no_answer < 1 for prediction in system.predict(decoded, examples))


def test_answers_in_languages_without_spaces_are_scored_by_characters():
    context = "小明在南京大學讀書\uff0c他喜歡打籃球。"
    examples = [asked(context, "小明在哪裡讀書\uff1f", "南京大學")]
    assert SYSTEM.notes(examples) == {"unit": "characters"}
    assert SYSTEM.notes([asked(PARAGRAPH, "Where?", "New York")]) == {"unit": "words"}
    first = context.index("大")
    assert SYSTEM.scores(examples, [AnswerSpan(first, first + 1, 0.5)]) == {
        "exact_match": 0,
        "f1": pytest.approx(200 / 3),
    }


def test_long_paragraphs_are_scored_but_not_trained_on(monkeypatch, caplog):
    monkeypatch.setattr(answers, "_MAX_TRAINING_TOKENS", 6)
    caplog.set_level(logging.WARNING, "elmo_tf")
    short = asked("Boris slept", "Who?", "Boris")
    examples = [short, asked("Anna sat in New York .", "Who?", "Anna"), asked("a b c d e f g", "Who?", "a")]
    assert SYSTEM.examples(examples, training=False) == examples
    assert SYSTEM.examples(examples, training=True) == examples[:2]
    (record,) = caplog.records
    assert "paragraphs of more than 6 tokens: 1 of 3" in record.getMessage()
