"""From files to a trained system, with a system of no weight: files, seeds, folders, and wrong input."""

import json
import logging
import re
import sys

import keras
import numpy as np
import pytest

from elmo_tf import tasks
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.tasks import fitting, runs, trained
from tests.helpers import MICRO, slow
from tests.tasks import toy

SENTENCES = [
    f"{label}\ta {word} film of {number}"
    for number in range(8)
    for label, word in (("good", "fine"), ("bad", "poor"), ("good", "warm"))
]


@pytest.fixture(autouse=True)
def with_toy(monkeypatch):
    monkeypatch.setitem(tasks.SYSTEMS, "toy", "a toy")
    monkeypatch.setitem(sys.modules, "elmo_tf.tasks.toy", toy)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text("\n".join(SENTENCES) + "\n")
    return path


def train(data, workdir, *assignments, **options):
    return runs.train("toy", data, data, workdir, assignments=["fit.epochs=12", *assignments], **options)


def test_a_trained_system_is_loaded_and_asked(data, tmp_path):
    results = train(data, tmp_path / "run", test=data)
    assert (results["task"], results["metric"], results["train_examples"]) == ("toy", "accuracy", 24)
    assert results["score"] == results["test"]["accuracy"] == 100
    assert results["best_epoch"] <= results["epochs"] == 12
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        ".lock",
        trained.CONFIG,
        trained.MODEL,
        trained.SCORES,
        "logs",
    }
    system = tasks.load(tmp_path / "run")
    good, bad = system.predict([["a", "fine", "film"], ["poor"]])
    assert (good["label"], good["tokens"], bad["label"]) == ("good", ["a", "fine", "film"], "bad")
    assert sum(good["probabilities"].values()) == pytest.approx(1, abs=1e-3)
    evaluation = system.evaluate(data)
    assert evaluation == {"task": "toy", "metric": "accuracy", "score": 100, "accuracy": 100, "examples": 24}
    # Once more: nothing to do.
    assert train(data, tmp_path / "run", test=data) == results


@pytest.mark.slow
def test_seeds_share_the_layers_of_the_sentences_and_the_best_is_loaded(data, tmp_path, caplog):
    caplog.set_level(logging.INFO, "elmo_tf")
    options = {"elmo": MICRO, "seeds": 2}
    results = train(data, tmp_path / "run", "elmo.place=both", "fit.epochs=2", **options)
    # One computation for both seeds, of the distinct sentences.
    (line,) = [one.getMessage() for one in caplog.records if "distinct sentences" in one.getMessage()]
    assert line == "ELMo's layers of 24 distinct sentences: 0.00 GB in memory"
    assert results["scores"].keys() == {"seed_0", "seed_1"}
    assert results["best"] in results["scores"]
    assert results["score"] == pytest.approx(sum(results["scores"].values()) / 2)
    loaded = tasks.load(tmp_path / "run")
    best = json.loads((tmp_path / "run" / results["best"] / trained.SCORES).read_bytes())
    assert loaded.evaluate(data)["score"] == pytest.approx(best["dev"]["accuracy"], abs=100 / 24 + 1e-4)


def test_a_fraction_of_the_data_is_the_same_for_every_seed(data, tmp_path):
    results = train(data, tmp_path / "run", "fit.epochs=1", fraction=0.1)
    assert results["train_examples"] == 3


def test_word_vectors_of_a_file_are_used(data, tmp_path):
    (tmp_path / "vectors").write_text("fine 1 0 0\npoor 0 1 0\nother 0 0 1\n")
    train(data, tmp_path / "run", "fit.epochs=1", "words.trainable=false", glove=tmp_path / "vectors")
    embedding = tasks.load(tmp_path / "run").network.get_layer("words")
    assert embedding.words == ["fine", "poor"]
    assert embedding.vectors.numpy().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0}, "fraction: expected above 0, at most 1, found 0"),
        (
            {"assignments": ["fit.epoch=2"]},
            "assignments: expected the key .* found 'fit.epoch'; did you mean fit.epochs\\?",
        ),
        ({"dev": "empty"}, "dev: expected at least one sentence, found none in .*empty"),
        ({"train": "none"}, "train: expected a readable file, found .*"),
        ({"train": "wrong"}, "train: expected a label, a tab and a sentence, found 'no tab' in line 2 of .*wrong"),
        ({"glove": "unequal"}, "glove: expected a word and 2 numbers, found 'film 1' in line 2 of .*unequal"),
        ({"elmo": "none"}, "elmo: expected a SavedModel, .*, found none of them: .*none"),
        ({"workdir": "."}, "workdir: expected a new folder, or one of an earlier run, found other files: .*"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_input_is_named_and_leaves_no_system(data, tmp_path, options, message):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "wrong").write_text("a\tb\nno tab\n")
    (tmp_path / "unequal").write_text("fine 1 2\nfilm 1\n")
    paths = {name: tmp_path / value for name, value in options.items() if isinstance(value, str)}
    arguments = {"train": data, "dev": data, "workdir": tmp_path / "run"} | options | paths
    with pytest.raises(InputError, match=f"^{message}$"):
        runs.train("toy", **arguments)
    assert not (tmp_path / "run" / trained.MODEL).exists()
    assert not (tmp_path / ".lock").exists()


def test_a_class_that_was_never_seen_is_reported_and_counts_as_wrong(data, tmp_path, caplog):
    caplog.set_level(logging.INFO, "elmo_tf")
    (tmp_path / "dev").write_text("good\ta fine film\nodd\ta film\nodd\ta poor film\n")
    results = runs.train("toy", data, tmp_path / "dev", tmp_path / "run", assignments=["fit.epochs=12"])
    assert "warning: dev has the label odd, which the training data does not have" in caplog.text
    # Four decimals everywhere, and a loss with its unit.
    assert results["score"] == results["dev"]["accuracy"] == 33.3333
    assert re.search(r"^epoch 1: loss [\d.]+ nats, dev accuracy ", caplog.messages[-12])


def test_a_workdir_of_another_run_is_refused(data, tmp_path):
    train(data, tmp_path / "run", "fit.epochs=1")
    with pytest.raises(InputError, match=r"^workdir: expected .* a run with recipe.fit.epochs = 2, found 1"):
        train(data, tmp_path / "run", "fit.epochs=2")
    with pytest.raises(InputError, match=r"^workdir: expected a system for ner, found one for toy"):
        trained.load(tmp_path / "run", "ner")
    with pytest.raises(InputError, match=r"^workdir: expected a JSON file, found No such file"):
        tasks.load(tmp_path)


@pytest.mark.parametrize("seeds", [1, slow(2)])
def test_an_unfinished_training_is_not_loaded_and_resumes(data, tmp_path, monkeypatch, seeds):
    expected = train(data, tmp_path / "whole", "fit.epochs=3", seeds=seeds)
    write_file, saved = staging.write_file, []

    def killed(path, content):
        write_file(path, content)
        if path.name == fitting.FILE:
            saved.append(path)
        if len(saved) == 3 * seeds - 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(staging, "write_file", killed)
        with pytest.raises(KeyboardInterrupt):
            train(data, tmp_path / "run", "fit.epochs=3", seeds=seeds)
    last = tmp_path / "run" / (f"seed_{seeds - 1}" if seeds > 1 else "")
    (last / ".scores.json.incomplete").touch()  # as a kill leaves it
    with pytest.raises(InputError, match=r"^workdir: expected a training that has ended, found an"):
        tasks.load(last)
    found = train(data, tmp_path / "run", "fit.epochs=3", seeds=seeds)
    assert without_seconds(found) == without_seconds(expected)
    assert not (last / fitting.FILE).exists()
    first, second = (tasks.load(tmp_path / name).network.get_weights() for name in ("whole", "run"))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_link_in_the_place_of_the_network_that_is_written_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / f".incomplete.{trained.MODEL}").symlink_to(target)
    trained.save_network(keras.Sequential([keras.Input((1,))]), tmp_path)
    assert (tmp_path / trained.MODEL).is_file()
    assert target.read_bytes() == b"precious"


def without_seconds(results):
    history = [{key: value for key, value in one.items() if key != "seconds"} for one in results.get("history", [])]
    return {name: value for name, value in results.items() if name != "seconds"} | {"history": history}


def test_data_that_changed_are_refused_and_a_copy_elsewhere_is_not(data, tmp_path):
    results = train(data, tmp_path / "run", "fit.epochs=1")
    copy = tmp_path / "copy"
    copy.write_bytes(data.read_bytes())
    assert train(copy, tmp_path / "run", "fit.epochs=1") == results
    data.write_text(data.read_text().replace("good", "bad", 1))
    with pytest.raises(
        InputError, match=r"^workdir: expected a new folder, or the same train as before, found another"
    ):
        train(data, tmp_path / "run", "fit.epochs=1")


@pytest.mark.slow
def test_another_bilm_is_refused(data, tmp_path):
    keras.utils.set_random_seed(0)
    train(data, tmp_path / "run", "fit.epochs=1", elmo=MICRO)
    with pytest.raises(InputError, match=r"^workdir: expected a new folder, or the same elmo as before, found another"):
        train(data, tmp_path / "run", "fit.epochs=1")


def test_the_words_of_a_sentence_count_once_for_all_its_phrases(tmp_path, monkeypatch):
    path = tmp_path / "trees"
    path.write_text("(3 (2 (2 a) (2 (2 very) (2 (2 warm) (2 film)))) (2 (2 again) (2 a)))\n")
    monkeypatch.setattr(runs._Run, "train", lambda run, *_: run._table.words)
    assert runs.train("sentiment", path, path, tmp_path / "run", assignments=["words.min_count=2"]) == ["a"]


def test_several_seeds_take_no_folder_that_has_something_else(data, tmp_path):
    train(data, tmp_path / "run")
    before = (tmp_path / "run" / trained.SCORES).read_bytes()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / trained.SCORES).write_text("mine")
    for folder in ("run", "mine"):
        with pytest.raises(InputError, match=r"^workdir: expected a new folder, or one of a run with several seeds"):
            train(data, tmp_path / folder, seeds=2)
    assert (tmp_path / "run" / trained.SCORES).read_bytes() == before
    assert (tmp_path / "mine" / trained.SCORES).read_text() == "mine"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [trained.SCORES]
    with pytest.raises(InputError, match=r"^seeds: expected at least 1, found 0$"):
        train(data, tmp_path / "new", seeds=0)
