"""From files to a trained system, with a system of a few weights: files, seeds, folders, and wrong input."""

import json
import logging
import re
import shutil
import sys
import zipfile

import h5py
import keras
import numpy as np
import pytest

from elmo_tf import tasks
from elmo_tf.cli import main
from elmo_tf.cli import tasks as tasks_cli
from elmo_tf.errors import InputError
from elmo_tf.tasks import fitting, runs, systems, trained
from tests import checks
from tests.helpers import MICRO, slow
from tests.tasks import toy

SENTENCES = [
    f"{label}\ta {word} film of {number}"
    for number in range(8)
    for label, word in (("good", "fine"), ("bad", "poor"), ("good", "warm"))
]


@pytest.fixture(autouse=True, scope="module")
def with_toy():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(systems.SYSTEMS, "toy", "a toy")
        patch.setitem(sys.modules, "elmo_tf.tasks.toy", toy)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data"
    path.write_text("\n".join(SENTENCES) + "\n")
    return path


def train(data, workdir, *assignments, **options):
    return runs.train("toy", data, data, workdir, assignments=["fit.epochs=12", *assignments], **options)


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    """The workdir of a complete run, for tests that only read it, and its results."""
    folder = tmp_path_factory.mktemp("done") / "run"
    return folder, train(data, folder, test=data)


def test_a_trained_system_is_loaded_and_used(data, done):
    folder, results = done
    assert (results["task"], results["metric"], results["train_examples"]) == ("toy", "accuracy", 24)
    assert results["score"] == results["test"]["accuracy"] == 100
    assert results["best_epoch"] <= results["epochs"] == 12
    names = {".lock", "config.json", "model.keras", "scores.json", "logs"}
    assert {path.name for path in folder.iterdir()} == names
    system = tasks.load(folder)
    good, bad = system.predict([["a", "fine", "film"], ["poor"]])
    assert (good["label"], good["tokens"], bad["label"]) == ("good", ["a", "fine", "film"], "bad")
    assert sum(good["probabilities"].values()) == pytest.approx(1, abs=1e-3)
    evaluation = system.evaluate(data)
    summary = {"task": "toy", "metric": "accuracy", "score": 100, "accuracy": 100, "examples": 24}
    assert {name: evaluation[name] for name in summary} == summary
    # A second run has nothing to do.
    assert train(data, folder, test=data) == results


def test_an_evaluation_has_the_scores_of_each_class_the_confusion_and_a_baseline(done, tmp_path, capsys, caplog):
    caplog.set_level(logging.INFO, "elmo_tf")
    (tmp_path / "test").write_text("good\ta fine film\ngood\ta poor film\ngood\tfine\nbad\tpoor\nodd\tpoor\n")
    command = ["task", "toy", "evaluate", "--workdir", str(done[0]), "--data", str(tmp_path / "test")]
    assert main(command) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["score"], scores["examples"], "confusion" in scores) == (60, 5, False)
    assert scores["most_frequent"] == {"answer": "good", "accuracy": 60}
    assert scores["by_label"] == {
        "bad": {"recall": 100, "precision": 33.3333, "f1": 50, "count": 1},
        "good": {"recall": 66.6667, "precision": 100, "f1": 80, "count": 3},
        "odd": {"recall": 0, "precision": 0, "f1": 0, "count": 1},
    }
    assert [" ".join(line.split()) for line in caplog.messages[-6:]] == [
        "precision recall f1 count",
        "bad 33.33 100.00 50.00 1",
        "good 100.00 66.67 80.00 3",
        "odd 0.00 0.00 0.00 1",
        "accuracy 60.00 of 5 examples",
        "accuracy 60.00 with 'good', the most frequent answer, for all",
    ]
    confusion = tasks.load(done[0]).evaluate(tmp_path / "test", confusion=True)["confusion"]
    assert confusion == {
        "bad": {"bad": 1, "good": 0, "odd": 0},
        "good": {"bad": 1, "good": 2, "odd": 0},
        "odd": {"bad": 1, "good": 0, "odd": 0},
    }
    assert tasks_cli._score_lines(scores | {"confusion": confusion})[4:9] == [
        "",
        "is \\ taken for  bad  good  odd",
        "bad             1    0     0",
        "good            1    2     0",
        "odd             1    0     0",
    ]


def test_systems_of_several_workdirs_answer_together(data, done, tmp_path):
    train(data, tmp_path / "other", "fit.epochs=1", "fit.seed=1")
    folders = done[0], tmp_path / "other"
    sentence = [["a", "fine", "film"]]
    alone = [tasks.load(folder).predict(sentence)[0]["probabilities"]["good"] for folder in folders]
    together = tasks.load(*folders)
    (prediction,) = together.predict(sentence)
    assert alone[0] != alone[1]
    assert prediction["probabilities"]["good"] == pytest.approx(sum(alone) / 2, abs=2e-4)  # rounded to four decimals
    assert main(["task", "toy", "evaluate", "--workdir", *map(str, folders), "--data", str(data)]) == 0
    with pytest.raises(InputError, match=r"^workdir: only one network can be exported$"):
        together.export(tmp_path / "served")
    path = tmp_path / "labels"
    path.write_text(data.read_text().replace("bad", "worse"))
    train(path, tmp_path / "labeled", "fit.epochs=1")
    with pytest.raises(InputError, match=r"/labeled: its task or labels differ from those of .*/run$"):
        tasks.load(done[0], tmp_path / "labeled")


@pytest.mark.slow
def test_seeds_share_the_layers_of_the_sentences_and_the_best_is_loaded(data, tmp_path, caplog):
    caplog.set_level(logging.INFO, "elmo_tf")
    results = train(data, tmp_path / "run", "elmo.place=both", "fit.epochs=2", elmo=MICRO, seeds=2)
    # The layers of the distinct sentences are computed once for both seeds.
    (line,) = [record.getMessage() for record in caplog.records if "distinct sentences" in record.getMessage()]
    assert line == "ELMo's layers of 24 distinct sentences: 0.00 GB in memory"
    assert results["scores"].keys() == {"seed_0", "seed_1"}
    assert results["best"] in results["scores"]
    assert results["score"] == pytest.approx(sum(results["scores"].values()) / 2)
    best = json.loads((tmp_path / "run" / results["best"] / trained.SCORES).read_bytes())
    score = tasks.load(tmp_path / "run").evaluate(data)["score"]
    assert score == pytest.approx(best["dev"]["accuracy"], abs=100 / 24 + 1e-4)
    with pytest.raises(InputError, match=r"^elmo: differs from that of the run in .* \(other data"):
        train(data, tmp_path / "run" / "seed_0", "elmo.place=both", "fit.epochs=2")


def test_a_part_of_the_data_and_word_vectors_of_a_file_are_used(data, tmp_path):
    (tmp_path / "vectors").write_text("fine 1 0 0\npoor 0 1 0\nother 0 0 1\n")
    options = {"glove": tmp_path / "vectors", "fraction": 0.1}
    results = train(data, tmp_path / "run", "fit.epochs=1", "words.trainable=false", **options)
    assert results["train_examples"] == 3
    embedding = tasks.load(tmp_path / "run").network.get_layer("words")
    assert embedding.words == ["fine", "poor"]
    assert embedding.vectors.numpy().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_vectors_of_several_files_stand_side_by_side_and_the_results_name_them(data, tmp_path, caplog):
    caplog.set_level(logging.INFO, "elmo_tf")
    paths = [tmp_path / "glove.txt", tmp_path / "turian.txt"]
    paths[0].write_text("poor 3 4\nother 0 1\n")
    paths[1].write_text("fine 0 0 2\npoor 0 5 0\n")
    assignments = ("fit.epochs=1", "words.trainable=false", "words.normalize=true")
    results = train(data, tmp_path / "run", *assignments, glove=paths)
    embedding = tasks.load(tmp_path / "run").network.get_layer("words")
    assert embedding.words == ["poor", "fine"]
    # Each file's vectors are scaled to length 1; a word that a file lacks has zeros there.
    np.testing.assert_allclose(embedding.vectors.numpy(), [[0] * 5, [0.6, 0.8, 0, 1, 0], [0, 0, 0, 0, 1]], rtol=1e-6)
    assert results["glove"] == [
        {"file": str(paths[0]), "dim": 2, "words": 1},
        {"file": str(paths[1]), "dim": 3, "words": 2},
    ]
    assert json.loads((tmp_path / "run" / trained.SCORES).read_bytes())["glove"] == results["glove"]
    assert f"{paths[1]}: vectors of 3 numbers for 2 words" in caplog.messages
    stored = json.loads((tmp_path / "run" / trained.CONFIG).read_bytes())
    assert stored["data"]["glove"] == [*map(str, paths)]
    with pytest.raises(InputError, match=r"^words: differs from that of the run in .* \(other data, word vectors or "):
        train(data, tmp_path / "run", *assignments, glove=paths[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0}, "fraction: expected above 0, at most 1, found 0"),
        ({"seeds": 0}, "seeds: expected at least 1, found 0"),
        ({"dev": "empty"}, ".*: it has no sentence"),
        ({"train": "none"}, ".*: no such file"),
        ({"elmo": "none"}, ".*: no model at this path or of this name .*"),
        ({"workdir": "."}, ".*/test_wrong[^/]*: has files that do not belong to a run; choose a new folder"),
        ({"workdir": "empty"}, ".*/empty: the folder cannot be made \\(File exists\\)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_input_is_named_and_leaves_no_system(data, tmp_path, options, message):
    (tmp_path / "empty").write_text("\n")
    paths = {name: tmp_path / value for name, value in options.items() if isinstance(value, str)}
    arguments = {"train": data, "dev": data, "workdir": tmp_path / "run"} | options | paths
    with pytest.raises(InputError, match=f"^{message}$"):
        runs.train("toy", **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_class_that_was_never_seen_is_reported_and_counts_as_wrong(data, tmp_path, caplog):
    caplog.set_level(logging.INFO, "elmo_tf")
    (tmp_path / "dev").write_text("good\ta fine film\nodd\ta film\nodd\ta poor film\n")
    results = runs.train("toy", data, tmp_path / "dev", tmp_path / "run", assignments=["fit.epochs=12"])
    assert "warning: labels of dev that the training data lacks: odd" in caplog.text
    # Scores have four decimals, and the loss has its unit.
    assert results["score"] == results["dev"]["accuracy"] == 33.3333
    assert re.search(r"^epoch 1: loss [\d.]+ nats, dev accuracy ", caplog.messages[-12])


def test_labels_in_another_column_are_refused_with_both_sides(done, tmp_path):
    """Labels of a word in the last column are refused by the reader."""
    paths = [tmp_path / name for name in ("train", "dev")]
    for number, path in enumerate(paths):
        path.write_text("".join(f"A sentence number {2 * row + number} .\tclass {row % 2}\n" for row in range(4)))
    message = r"none of its labels \('A sentence number 1 .', .*\) is in the training data, which has 'A sentence nu"
    with pytest.raises(InputError, match=f"^dev: {message}"):
        runs.train("toy", *paths, tmp_path / "run")
    with pytest.raises(InputError, match=f"^{paths[1]}: none of its labels "):
        tasks.load(done[0]).evaluate(paths[1])


def test_a_workdir_of_another_run_is_refused(data, done, tmp_path):
    folder, results = done
    moved = tmp_path / "moved"
    moved.write_bytes(data.read_bytes())
    assert train(moved, folder, test=moved) == results
    moved.write_text(data.read_text().replace("good", "bad", 1))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / trained.SCORES).write_text("mine")
    several = "/.*: has files that do not belong to a run with several seeds; choose a new folder"
    for call, message in (
        (lambda: train(data, folder, "fit.epochs=2", test=data), r"/.*: has .* another recipe.fit.epochs \(12\); .*"),
        (lambda: train(moved, folder, test=data), "train: differs from that of the run in .*"),
        (lambda: train(data, folder, test=data, fraction=0.5), r"/.*: has .* another data.fraction \(1.0\); .*"),
        (lambda: train(data, folder, seeds=2), several),
        (lambda: train(data, tmp_path / "mine", seeds=2), several),
        (lambda: trained.load(folder, "ner"), "/.*: contains a system for toy, not for ner"),
        (lambda: tasks.load(tmp_path), "/.*: not a workdir of elmo-tf task NAME train"),
        (lambda: tasks.load(folder).predict("good film"), "sentences: expected a list of sentences, .*"),
    ):
        with pytest.raises(InputError, match=f"^{message}$"):
            call()
    assert json.loads((folder / trained.SCORES).read_bytes()) == results
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", '{"task": "toy", "recipe": {}}', "no key labels"),
        ("config.json", '{"task": "toy", "recipe": {"fit": {"x": 1}}, "labels": []}', "no setting 'fit.x'.*"),
        ("scores.json", '{"best": "../seed_0"}', "best to be .*, found .../seed_0."),
        ("model.keras", "", r"not a complete Keras model \(.*\)"),
    ],
)
def test_a_damaged_file_is_named(done, tmp_path, name, content, message):
    shutil.copytree(done[0], tmp_path / "run")
    if name == "scores.json":
        (tmp_path / "run" / "config.json").unlink()
    (tmp_path / "run" / name).write_text(content)
    with pytest.raises(InputError, match=f"^.*/{name}: (expected )?{message}$"):
        tasks.load(tmp_path / "run")


def test_a_network_with_a_link_to_another_file_is_refused(done, tmp_path):
    network = shutil.copytree(done[0], tmp_path / "run") / "model.keras"
    with h5py.File(tmp_path / "weights", "w") as file:
        file["layers"] = h5py.ExternalLink("/other", "/layers")
    with zipfile.ZipFile(network, "w") as archive:
        archive.write(tmp_path / "weights", "model.weights.h5")
    with pytest.raises(InputError, match=f"^{network}: layers is a link; links are not followed$"):
        tasks.load(tmp_path / "run")


@pytest.mark.parametrize("seeds", [1, slow(2)])
def test_an_unfinished_training_is_not_loaded_and_resumes(data, tmp_path, monkeypatch, seeds):
    options = ["fit.epochs=3", "fit.ema=0.5", "fit.decay_rate=0.9", "fit.decay_steps=1"]
    expected = train(data, tmp_path / "whole", *options, seeds=seeds)
    if seeds == 1:
        rates = [0.1 * 0.9 ** (6 * epoch + 5) for epoch in range(3)]
        assert [epoch["learning_rate"] for epoch in expected["history"]] == pytest.approx(rates)
    with monkeypatch.context() as patch:
        toy.kill(patch, 3 * seeds - 1)  # in the second epoch of the last run
        with pytest.raises(toy.Killed):
            train(data, tmp_path / "run", *options, seeds=seeds)
    last = tmp_path / "run" / (f"seed_{seeds - 1}" if seeds > 1 else "")
    (last / ".scores.json.incomplete").touch()  # as a kill leaves it
    with pytest.raises(InputError, match=f"^{last}: training is incomplete; run `elmo-tf task NAME train` again$"):
        tasks.load(last)
    resumed = train(data, tmp_path / "run", *options, seeds=seeds)
    assert without_seconds(resumed) == without_seconds(expected)
    assert not (last / fitting.FILE).exists()
    first, second = (tasks.load(tmp_path / name).network.get_weights() for name in ("whole", "run"))
    checks.assert_all_close(first, second)


def without_seconds(results):
    history = [{key: value for key, value in epoch.items() if key != "seconds"} for epoch in results.get("history", [])]
    return {name: value for name, value in results.items() if name != "seconds"} | {"history": history}


def test_a_link_in_the_place_of_the_network_that_is_written_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / f".incomplete.{trained.MODEL}").symlink_to(target)
    trained.save_network(keras.Sequential([keras.Input((1,))]), tmp_path)
    assert (tmp_path / trained.MODEL).is_file()
    assert target.read_bytes() == b"precious"


def test_the_words_of_a_sentence_count_once_for_all_its_phrases(tmp_path):
    path = tmp_path / "trees"
    path.write_text("(3 (2 (2 a) (2 (2 very) (2 (2 warm) (2 film)))) (2 (2 again) (2 a)))\n")
    runs.train("toy", path, path, tmp_path / "run", assignments=["words.min_count=2", "fit.epochs=12"])
    assert tasks.load(tmp_path / "run").network.get_layer("words").words == ["a"]
