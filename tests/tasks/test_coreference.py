"""Coreference: windows of documents, clusters, the loss."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.annotated.coref_documents import Document
from elmo_tf.tasks import coreference
from elmo_tf.tasks.coreference import Task, antecedent_loss
from elmo_tf.tasks.layers.antecedents import NO_ANTECEDENT
from tests import checks
from tests.tasks.small import EXAMPLES, recipe_of

SYSTEM = Task(Task.recipes["small"])
LONG = Document(
    "a",
    [["a"] * length for length in (1, 3, 2, 4)],
    [[(0, 1), (1, 3), (9, 10)], [(3, 5), (5, 6)]],
    [["s"] * length for length in (1, 3, 2, 4)],
)


def test_a_window_has_some_sentences_and_the_mentions_inside_them():
    seen = {}
    for seed in range(40):
        part = coreference.window(LONG, 2, np.random.default_rng(seed))
        seen[tuple(map(len, part.sentences))] = part
        assert [len(names) for names in part.speakers] == [len(sentence) for sentence in part.sentences]
    assert {lengths: part.clusters for lengths, part in seen.items()} == {
        (1, 3): [[(0, 1), (1, 3)]],
        # A mention that crosses the border of the window is left out.
        (3, 2): [[(0, 2)], [(2, 4), (4, 5)]],
        (2, 4): [[(5, 6)], [(1, 2)]],
    }
    assert coreference.window(LONG, 4, np.random.default_rng(0)) is LONG


def test_a_very_long_sentence_is_read_as_several_and_words_keep_their_numbers():
    document = Document("", [["a"], ["b"] * 600], [[(0, 1), (500, 502)]], [["s"], ["t"] * 600])
    cut = coreference.cut(document)
    for rows in (cut.sentences, cut.speakers, SYSTEM.example_of([["a"], ["b"] * 600]).sentences):
        assert [len(row) for row in rows] == [1, 256, 256, 88]
    assert cut.clusters == document.clusters


def test_the_sentences_of_a_window_are_those_whose_layers_elmo_was_told_to_remember():
    system = Task(recipe_of("coreference", "network.window=1"))
    examples = EXAMPLES["coreference"]
    remembered = {tuple(token.encode() for token in tokens) for example in examples for tokens in system.texts(example)}
    for seed in range(5):
        rows = system.inputs(system.resample(examples, np.random.default_rng(seed)))["tokens"]
        assert len(rows) == len(examples)
        assert {tuple(filter(None, row)) for row in rows} <= remembered


def test_mentions_are_counted_through_the_batch_and_clusters_differ_between_documents():
    rows = coreference.mention_rows([LONG, Document("b", [["b"]]), LONG])
    assert rows[:5].tolist() == [[0, 1, 1], [1, 3, 1], [9, 10, 1], [3, 5, 2], [5, 6, 2]]
    assert rows[5:].tolist() == [[first + 11, last + 11, number + 2] for first, last, number in rows[:5].tolist()]
    assert coreference.mention_rows([Document("b", [["b"]])]).shape == (0, 3)


def test_spans_that_refer_to_each_other_through_others_are_one_cluster_and_no_span_is_alone():
    spans = np.array([[0, 1], [1, 3], [2, 3], [5, 6], [9, 10], [10, 11], [12, 14], [13, 14]])
    steps = np.array([0, 0, 2, 1, 3, 0, 0, 1])
    clusters = coreference.clusters_of(spans, steps, [LONG, Document("b", [["b"] * 4])])
    assert clusters == [[[(0, 1), (2, 3), (5, 6)], [(1, 3), (9, 10)]], [[(2, 4), (3, 4)]]]


def test_the_loss_is_that_of_all_right_antecedents_together():
    scores = np.random.default_rng(0).normal(size=(5, 4))
    scores[:, 0] = 0
    # The last two spans belong to another document.
    for span, step in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)]:
        scores[span, step] = NO_ANTECEDENT
    clusters = [1, 1, 1, 0, 0]
    right = [[0], [1], [1, 2], [0], [0]]
    expected = sum(
        np.log(np.exp(row).sum()) - np.log(np.exp(row[antecedents]).sum())
        for row, antecedents in zip(scores, right, strict=True)
    )
    close = {"abs": checks.rounding(4 * 4, 4, 5)}
    loss = antecedent_loss(tf.constant(scores, tf.float32), tf.constant(clusters))
    assert float(loss) == pytest.approx(expected, **close)
    # A span refers to none if the other mentions of its cluster come later or were not kept.
    alone = antecedent_loss(tf.constant(scores[:2], tf.float32), tf.constant([0, 3]))
    assert float(alone) == pytest.approx(np.log(1 + np.exp(scores[1, 1])), **close)


def test_what_a_program_asks_about_is_sentences_or_a_text():
    assert SYSTEM.example_of([["Anna", "sat"], ["she"]]) == Document("", [["Anna", "sat"], ["she"]])
    example = SYSTEM.example_of("Anna sat.\n\nShe  slept.")
    assert SYSTEM.to_json(example, [[(0, 1), (3, 4)], [(1, 3), (4, 6)]]) == {
        "doc_key": "",
        "sentences": [["Anna", "sat", "."], ["She", "slept", "."]],
        "clusters": [[[0, 0], [3, 3]], [[1, 2], [4, 5]]],
        "mentions": [["Anna", "She"], ["sat .", "slept ."]],
        "offsets": [[[0, 4], [11, 14]], [[5, 9], [16, 22]]],
    }


def test_gold_clusters_score_100_and_none_0():
    examples = EXAMPLES["coreference"]
    scores = SYSTEM.scores(examples, [example.clusters for example in examples])
    names = [f"{name}_{measure}" for name in ("muc", "bcub", "ceafe") for measure in ("recall", "precision", "f1")]
    assert scores == pytest.approx(dict.fromkeys(["average_f1", *names], 100))
    assert SYSTEM.scores(examples, [[] for _ in examples])["average_f1"] == 0
