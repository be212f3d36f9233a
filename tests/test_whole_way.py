"""The whole way from text to vectors and the nearest uses, as a user types it."""

import json
import os
import pathlib
import random
import re

import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import cli
from elmo_tf import config as config_lib
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import verification
from elmo_tf.scoring import Score
from elmo_tf.training.evaluation import unigram_perplexity
from elmo_tf.workdir import metrics_file
from elmo_tf.workdir.folder import open_workdir
from tests import checks, helpers

NOISE = re.compile(r"Traceback|Warning|WARNING|oneDNN|cuda|absl::|E0000|I0000|W0000")

SETTINGS = {
    "model.char_cnn.embedding_dim": "4",
    "model.char_cnn.filters": "[[1, 8], [3, 16]]",
    "model.lstm.units": "32",
    "model.lstm.projection_dim": "16",
    "model.lstm.num_layers": "1",
    "train.batch_size": "4",
    "train.unroll_steps": "10",
    "train.num_sampled": "20",
    "train.learning_rate": "0.5",
    "train.dropout_rate": "0",
}
SET = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
STEPS = 150


def sentences(count: int = 400) -> list[str]:
    """Returns text in which each word tells much about its neighbors."""
    draw = random.Random(0)
    people, banks = ["anna", "boris", "zoë", "chen"], ["river", "stream"]
    lines = []
    for number in range(count):
        who = draw.choice(people)
        lines.append(
            f"{who} sat on the bank of the {draw.choice(banks)} at {number} ."
            if draw.random() < 0.5
            else f"the bank lends money to {who} {'again ' * draw.randint(0, 3)}."
        )
    return lines


def run_alone(folder: pathlib.Path, *arguments: str) -> str:
    """Runs a command in a process of its own, as a user would in `folder`; returns what it wrote to stderr."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": None}
    done = helpers.run_python("-m", "elmo_tf.cli", *arguments, cwd=folder, env=quiet, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not NOISE.search(done.stderr), done.stderr
    return done.stderr


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a command in this process, which saves the time to load TensorFlow; returns what it wrote to stdout."""
    monkeypatch.chdir(tmp_path)

    def run_here(*arguments: str) -> str:
        capsys.readouterr()
        assert cli.main(list(arguments)) == 0
        return capsys.readouterr().out

    return run_here


def assert_scores_of_export(exported, texts: list[str], scores: list[Score]) -> None:
    """Asserts that the signature `score` of an export returns the scores of a sentence, of unknown words and of ""."""
    outputs = {name: value.numpy() for name, value in exported.signatures["score"](tf.constant(texts)).items()}
    long, unknown, _ = scores
    assert outputs["log_probs"].shape == (3, 2, len(long.tokens) + 2)
    np.testing.assert_allclose(outputs["log_probs"][0, 0], [0, *long.forward_log_probs], **checks.TOLERANCE)
    np.testing.assert_allclose(outputs["log_probs"][0, 1], [*long.backward_log_probs, 0], **checks.TOLERANCE)
    np.testing.assert_allclose(outputs["log_probs"][1, 1, :3], unknown.backward_log_probs, **checks.TOLERANCE)
    assert not outputs["log_probs"][1, :, 4:].any()
    np.testing.assert_allclose(outputs["total"], [score.total for score in scores], rtol=1e-5)
    assert outputs["tokens"][1].tolist() == [b"zebras", b"bark", *[b""] * (len(long.tokens) - 2)]


def test_from_text_to_the_nearest_uses_as_a_user_types_it(tmp_path, run, monkeypatch, loaded_once):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in sentences()), "utf-8")

    split = ["--heldout", "held", "--heldout-fraction", "0.1", "--min-count", "2"]
    run("preprocess", "--input", "text.txt", "--output", "data", *split)
    data, heldout = (record_folder.open_folder(tmp_path / name) for name in ("data", "held"))
    assert 10 < heldout.info.sentences < 100
    stored = [b" ".join(words).decode() for folder in (data, heldout) for _, words in helpers.sentences_of(folder)]
    assert sorted(stored) == sorted(sentences())

    train = ["train", "--data", "data", "--workdir", "work", "--preset", "tiny", "--paper-recipe", *SET]
    log = run_alone(tmp_path, *train, "--heldout", "held", "--steps", str(STEPS))
    assert f"training: step 0 to {STEPS}, " in log
    assert re.search(rf"step {STEPS}/{STEPS} .* tokens/s", log)
    assert re.search(rf"step {STEPS}: held-out perplexity [\d.]+ \(forward [\d.]+, backward [\d.]+\)", log)
    opened = open_workdir(tmp_path / "work")
    asked = [f"{key}={value}" for key, value in SETTINGS.items()]
    recipe = config_lib.override(config_lib.with_paper_recipe(config_lib.preset("tiny")), asked)
    assert opened.config == config_lib.with_length(recipe, steps=STEPS)
    assert opened.vocabulary.tokens == data.vocabulary.tokens

    figures = json.loads(
        run("evaluate", "--workdir", "work", "--data", "held", "--batch-size", "4", "--unigram", "data")
    )
    assert list(figures)[:5] == ["forward_perplexity", "backward_perplexity", "perplexity", "tokens", "unknown_rate"]
    assert figures["tokens"] == heldout.info.tokens + heldout.info.sentences
    assert figures["unknown_rate"] > 0  # each number occurs once
    assert figures["unigram_perplexity"] == unigram_perplexity(data, heldout)
    for name in ("forward_perplexity", "backward_perplexity", "perplexity"):
        assert 1 < figures[name] < figures["unigram_perplexity"] / 2
    in_training = metrics_file.evaluations(opened.metrics)[-1]
    assert in_training.step == STEPS
    assert figures["perplexity"] == pytest.approx(in_training.perplexity, rel=checks.PERPLEXITY)

    options = ["--mix", "0.5,1", "--gamma", "2", "--softmax"]
    assert run("export", "--workdir", "work", "--output", "models/bank", *options) == "models/bank/1\n"
    assert os.listdir(tmp_path / "models" / "bank") == ["1"]
    trained, exported = (elmo_tf.load(path, engine="numpy") for path in ("work", "models/bank/1"))
    weights = 2 * np.exp([0.5, 1]) / np.exp([0.5, 1]).sum()
    texts = ["anna sat on the bank of the river", "zebras bark", ""]
    for layers, mixed in zip(trained.encode(texts, "all"), exported.encode(texts), strict=True):
        np.testing.assert_allclose(mixed.vectors, np.tensordot(weights, layers.vectors, 1), **checks.TOLERANCE)
    assert_scores_of_export(tf.saved_model.load("models/bank/1"), texts, trained.score(texts))
    checks.assert_all_close(
        *([score.forward_log_probs for score in model.score(texts)] for model in (trained, exported))
    )
    assert exported.fill("anna sat on the [MASK]", top=1) == trained.fill("anna sat on the [MASK]", top=1)
    provenance = json.loads((tmp_path / "models" / "bank" / "1" / "assets" / "provenance.json").read_text())
    about_words = {"size": len(data.vocabulary), "sha256": data.vocabulary.sha256()}
    assert (provenance["step"], provenance["vocabulary"]) == (STEPS, about_words)
    with monkeypatch.context() as patch:  # the export has just verified it in a fresh process
        patch.setattr(verification, "problems_in_fresh_process", lambda _: [])
        assert run("verify", "--model", "models/bank").count("models/bank/1: ") == 2

    options = ["--word", "bank", "--same-word", "--sentence", "zoë sat on the bank of the river at night ."]
    lines = run("neighbors", "--model", "models/bank/1", "--input", "text.txt", *options, "--count", "5").splitlines()
    uses = [re.fullmatch(r" (\d\.\d{3})  +([\d,]+)  (\S+ sat on the \[bank\] of the .*)", line) for line in lines]
    assert len(uses) == 5 and float(uses[0][1]) > 0.8
    assert [sentences()[int(use[2]) - 1] for use in uses] == [re.sub(r"[\[\]]", "", use[3]) for use in uses]

    run("embed", "--model", "models/bank", "--input", "text.txt", "--output", "vectors.hdf5")

    assert sorted(os.listdir(tmp_path)) == ["data", "held", "models", "text.txt", "vectors.hdf5", "work"]
