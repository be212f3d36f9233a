"""Coreference, from files to clusters."""

import json

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import tasks
from elmo_tf.annotated.conll2012 import Document
from elmo_tf.cli import main
from elmo_tf.errors import InputError
from elmo_tf.tasks import documents
from elmo_tf.tasks.coreference import Task, antecedent_loss
from elmo_tf.tasks.layers.antecedents import NONE
from elmo_tf.tasks.recipe import chosen
from tests import checks
from tests.tasks.small import EXAMPLES, OWN, SMALL, recipe_of

LONG = Document(
    "a",
    [["a"] * length for length in (1, 3, 2, 4)],
    [[(0, 1), (1, 3), (9, 10)], [(3, 5), (5, 6)]],
    [["s"] * length for length in (1, 3, 2, 4)],
)


def test_a_window_has_some_sentences_and_the_mentions_inside_them():
    seen = {}
    for seed in range(40):
        found = documents.window(LONG, 2, np.random.default_rng(seed))
        seen[tuple(map(len, found.sentences))] = found
        assert [len(names) for names in found.speakers] == [len(sentence) for sentence in found.sentences]
    assert {lengths: found.clusters for lengths, found in seen.items()} == {
        (1, 3): [[(0, 1), (1, 3)]],
        # A mention at the border of the window is in none.
        (3, 2): [[(0, 2)], [(2, 4), (4, 5)]],
        (2, 4): [[(5, 6)], [(1, 2)]],
    }
    assert documents.window(LONG, 4, np.random.default_rng(0)) is LONG


def test_a_very_long_sentence_is_read_as_several_and_words_keep_their_numbers():
    document = Document("", [["a"], ["b"] * 600], [[(0, 1), (500, 502)]], [["s"], ["t"] * 600])
    found = Task.example_of([["a"], ["b"] * 600])
    assert [len(one) for one in found.sentences] == [1, 256, 256, 88]
    found = documents.cut(document)
    assert [len(one) for one in found.speakers] == [1, 256, 256, 88]
    assert found.clusters == document.clusters


def test_each_epoch_sees_other_windows_which_the_seed_decides():
    system = Task(chosen(Task.recipes, ["network.window=1"]), [])
    draws = [
        [len(one.sentences[0]) for _ in range(20) for one in system.drawn([LONG], np.random.default_rng(seed))]
        for seed in ((0, 0, 1), (0, 0, 1), (0, 1, 1))
    ]
    assert draws[0] == draws[1] != draws[2]


def test_the_sentences_of_a_window_are_those_whose_layers_elmo_was_told_to_remember():
    system = Task(recipe_of("coreference", "network.window=1"), [])
    examples = EXAMPLES["coreference"]
    known = {tuple(token.encode() for token in tokens) for one in examples for tokens in system.texts(one)}
    for seed in range(5):
        rows = system.inputs(system.drawn(examples, np.random.default_rng(seed)))["tokens"]
        assert len(rows) == len(examples)
        assert {tuple(filter(None, row)) for row in rows} <= known


def test_mentions_are_counted_through_the_batch_and_clusters_differ_between_documents():
    rows = documents.mention_rows([LONG, Document("b", [["b"]]), LONG])
    assert rows[:5].tolist() == [[0, 1, 1], [1, 3, 1], [9, 10, 1], [3, 5, 2], [5, 6, 2]]
    assert rows[5:].tolist() == [[first + 11, last + 11, number + 2] for first, last, number in rows[:5].tolist()]
    assert documents.mention_rows([Document("b", [["b"]])]).shape == (0, 3)


def test_spans_that_refer_to_each_other_through_others_are_one_cluster_and_no_span_is_alone():
    spans = np.array([[0, 1], [1, 3], [2, 3], [5, 6], [9, 10], [10, 11], [12, 14], [13, 14]])
    steps = np.array([0, 0, 2, 1, 3, 0, 0, 1])
    found = documents.clusters_of(spans, steps, [LONG, Document("b", [["b"] * 4])])
    assert found == [[[(0, 1), (2, 3), (5, 6)], [(1, 3), (9, 10)]], [[(2, 4), (3, 4)]]]


def test_the_loss_is_that_of_all_right_antecedents_together():
    scores = np.random.default_rng(0).normal(size=(5, 4))
    scores[:, 0] = 0
    # The last two are another document's.
    for span, step in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)]:
        scores[span, step] = NONE
    clusters = [1, 1, 1, 0, 0]
    right = [[0], [1], [1, 2], [0], [0]]
    expected = sum(
        np.log(np.exp(row).sum()) - np.log(np.exp(row[places]).sum()) for row, places in zip(scores, right, strict=True)
    )
    found = antecedent_loss(tf.constant(scores, tf.float32), tf.constant(clusters))
    assert float(found) == pytest.approx(expected, abs=checks.rounding(4 * 4, 4, 5))
    # A span of a cluster whose others come later, or were not kept, refers to none.
    one = antecedent_loss(tf.constant(scores[:2], tf.float32), tf.constant([0, 3]))
    assert float(one) == pytest.approx(np.log(1 + np.exp(scores[1, 1])), abs=checks.rounding(4 * 4, 4, 5))


def test_what_a_program_asks_about_is_sentences_or_a_text():
    assert Task.example_of([["Anna", "sat"], ["she"]]) == Document("", [["Anna", "sat"], ["she"]])
    example = Task.example_of("Anna sat.\n\nShe  slept.")
    told = Task(Task.recipes["small"], []).to_json(example, [[(0, 1), (3, 4)], [(1, 3), (4, 6)]])
    assert told == {
        "doc_key": "",
        "sentences": [["Anna", "sat", "."], ["She", "slept", "."]],
        "clusters": [[[0, 0], [3, 3]], [[1, 2], [4, 5]]],
        "mentions": [["Anna", "She"], ["sat .", "slept ."]],
        "offsets": [[[0, 4], [11, 14]], [[5, 9], [16, 22]]],
    }


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (" ", "a text with words, found ' '"),
        ([], r"documents: lists of sentences, or texts; none of them empty, found \[\]"),
        (3, "documents: .*, found 3"),
        (["Anna", "sat"], "lists of tokens, none of them empty, found 'Anna'"),
        ([["Anna"], []], r"lists of tokens, none of them empty, found \[\]"),
    ],
)
def test_other_things_are_refused(item, message):
    with pytest.raises(InputError, match=f"^sentences: expected {message}$"):
        Task.example_of(item)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("network.max_width=0", "at least 1, found 0"),
        ("network.window=0", "at least 1, found 0"),
        ("network.ratio=0.0", "above 0, found 0.0"),
        ("network.hidden_units=0", "at least 1, found 0"),
        ("network.lexical_dropout_rate=1.0", "0 or more, below 1, found 1.0"),
    ],
)
def test_wrong_settings_are_named(assignment, message):
    with pytest.raises(InputError, match=f"^{assignment.partition('=')[0]}: expected {message}$"):
        recipe_of("coreference", assignment)


def write_columns(path, texts: list[str]) -> None:
    """Writes documents in CoNLL-2012's columns; a line of a text has a sentence's words, mentions behind a slash."""
    lines = []
    for number, text in enumerate(texts):
        lines.append(f"#begin document (GUM_news_{number}); part 0")
        for sentence in text.split("\n"):
            for word, _, mention in (one.partition("/") for one in sentence.split()):
                lines.append(f"x 0 0 {word} - - - - - - - {mention or '-'}")
            lines.append("")
        lines.append("#end document")
    path.write_text("\n".join(lines) + "\n")


TEXTS = ["Anna/(1 Smith/1) sat .\nShe/(1) slept .", "Boris/(7) saw Anna/(2) .\nHe/(7) saw her/(2) .\nThe end"] * 3


@pytest.mark.slow  # test_ner.py has the commands, test_systems.py the network
def test_a_system_is_trained_and_finds_clusters_in_text(tmp_path, capsys):
    data, run = tmp_path / "data.conll", tmp_path / "run"
    write_columns(data, TEXTS)
    settings = ["fit.epochs=2", "network.window=2", "network.dropout_rate=0.1", "fit.learning_rate=0.03"]
    settings = [part for one in [*SMALL, *OWN["coreference"], *settings] for part in ("--set", one)]
    common = ["--train", data, "--dev", data, "--workdir", run, *settings]
    assert main(["task", "coreference", "train", *map(str, common)]) == 0, capsys.readouterr().err
    results = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (results["task"], results["metric"], results["train_examples"]) == ("coreference", "average_f1", 6)
    assert results["dev"].keys() == {"average_f1"} | {
        f"{name}_{measure}" for name in ("muc", "bcub", "ceafe") for measure in ("precision", "recall", "f1")
    }
    (tmp_path / "text").write_text("Mr. Smith sat.\nShe slept.")
    (tmp_path / "lines").write_text(json.dumps({"text": "Anna sat."}) + "\n" + json.dumps({"sentences": [["She"]]}))
    for name, keys, number in (("text", [""], 1), ("lines", ["", ""], 2), ("data.conll", None, 6)):
        arguments = ["--workdir", str(run), "--input", str(tmp_path / name)]
        assert main(["task", "coreference", "predict", *arguments]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(lines) == number
        assert keys is None or [line["doc_key"] for line in lines] == keys
    system = tasks.load(run)
    assert system.system.labels == ["news"]
    text, sentences = system.predict(["Anna sat. She slept.", [["Anna", "sat", "."], ["She", "slept", "."]]])
    assert text["clusters"] == sentences["clusters"]
    for places, words in zip(text["offsets"], text["mentions"], strict=True):
        assert ["Anna sat. She slept."[begin:end] for begin, end in places] == [
            word.replace(" .", ".") for word in words
        ]


def test_a_document_is_judged_as_the_files_have_it():
    system = Task(recipe_of("coreference"), [])
    examples = EXAMPLES["coreference"]
    assert system.scores(examples, [one.clusters for one in examples])["average_f1"] == pytest.approx(100)
    assert system.scores(examples, [[] for _ in examples])["average_f1"] == 0
