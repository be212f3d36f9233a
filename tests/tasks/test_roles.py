"""Semantic roles, from files to answers, as a user types the commands; and wrong input."""

import json

import pytest

from elmo_tf import tasks
from elmo_tf.annotated.frames import Frame
from elmo_tf.cli import main
from elmo_tf.errors import InputError
from elmo_tf.tasks import batching, runs
from elmo_tf.tasks.recipe import chosen
from elmo_tf.tasks.roles import Task
from elmo_tf.tasks.token_vectors import word_table

FRAMES = """1 anna saw boris ||| B-A0 B-V B-A1
1 boris slept ||| B-A0 B-V
3 the cat that slept saw anna ||| B-A0 I-A0 B-R-A0 B-V O O
4 the cat that slept saw anna ||| B-A0 I-A0 I-A0 I-A0 B-V B-A1
"""
SETTINGS = ["recipe=small", "network.layers=2", "network.units=6", "words.dim=4", "fit.epochs=2"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text(FRAMES)
    return path


def run(capsys, *arguments) -> list[str]:
    status = main(["task", "roles", *map(str, arguments)])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out.splitlines()


@pytest.mark.slow  # test_ner.py has the commands, test_systems.py the network
def test_a_labeller_is_trained_evaluated_and_used(data, tmp_path, capsys):
    common = ["--train", data, "--dev", data, "--workdir", tmp_path / "run"]
    settings = [part for one in SETTINGS for part in ("--set", one)]
    results = json.loads(run(capsys, "train", *common, *settings)[-1])
    assert (results["task"], results["metric"], results["train_examples"]) == ("roles", "f1", 4)
    (line,) = run(capsys, "evaluate", "--workdir", tmp_path / "run", "--data", data)
    evaluation = json.loads(line)
    assert (evaluation["score"], evaluation["examples"]) == (pytest.approx(results["score"], abs=1e-4), 4)
    assert evaluation.keys() >= {"precision", "recall", "f1"}
    (tmp_path / "text").write_text("1 anna slept |||\n0 sleep , anna |||\n")
    lines = run(capsys, "predict", "--workdir", tmp_path / "run", "--input", tmp_path / "text")
    answers = [json.loads(one) for one in lines]
    assert [(one["tokens"], one["predicate"]) for one in answers] == [
        (["anna", "slept"], 1),
        (["sleep", ",", "anna"], 0),
    ]
    # As a program asks.
    system = tasks.load(tmp_path / "run")
    assert system.predict([(["anna", "slept"], 1), (["sleep", ",", "anna"], 0)]) == answers
    for wrong, message in {
        "anna slept": "pairs of a sentence, a list of tokens, and the index of a predicate, found 'anna slept'",
        (("anna",), 1): "a predicate's index from 0 to 0, found 1",
        (("anna",), 0.0): "a predicate's index from 0 to 0, found 0.0",
        ("anna", 0): "lists of tokens, none of them empty, found 'anna'",
    }.items():
        with pytest.raises(InputError, match=f"^sentences: expected {message}$"):
            system.predict([wrong])


def test_whole_arguments_are_scored_and_frequent_labels_by_themselves():
    gold = ["B-A0", "B-V", "B-A1", "B-C-A1"]
    examples = [Frame(["a", "b", "c", "d"], 1, gold)] * 100
    system = Task(Task.recipes["small"], Task.labels_of(examples))
    found = system.scores(examples, [["B-A0", "O", "O", "O"]] * 50 + [gold] * 50)
    assert found == {
        "precision": 100,
        "recall": 75,
        "f1": pytest.approx(600 / 7),
        "A0": 100,
        "A1": pytest.approx(200 / 3),
    }
    assert system.scores(examples[:1], [gold]) == {"precision": 100, "recall": 100, "f1": 100}
    answer = system.to_json(examples[0], gold)
    assert answer["spans"][-1] == {"start": 3, "end": 4, "kind": "C-A1"}


def test_long_sentences_are_judged_but_not_trained_on():
    long, short = Frame(["a"] * 101, 0, ["B-V"] + ["O"] * 100), Frame(["a"] * 100, 0, ["B-V"] + ["O"] * 99)
    assert Task.examples([[long], [short]], training=True) == [short]
    assert Task.examples([[long], [short]], training=False) == [long, short]


def test_the_words_of_a_sentence_count_once_for_all_its_predicates(data):
    items = Task.read(data, Task.recipes["small"])
    examples = Task.examples(items, training=True)
    assert [len(one) for one in items] == [1, 1, 2]
    texts = runs._texts(Task, examples)
    assert [len(one) for one in texts] == [3, 2, 6]
    assert word_table(Task.recipes["small"], texts, []).words == ["anna", "boris", "saw", "slept"]
    assert max(batching.length(Task, one) for one in examples) == 6


@pytest.mark.parametrize("name", ["layers", "units", "predicate_dim"])
def test_a_network_of_nothing_is_refused(name):
    with pytest.raises(InputError, match=f"^network.{name}: expected at least 1, found 0$"):
        chosen(Task.recipes, [f"network.{name}=0"])
