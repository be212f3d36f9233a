"""The loop: resuming, interrupts, what a workdir holds, and what it refuses."""

import dataclasses
import logging
import os
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import cli
from elmo_tf import config as config_lib
from elmo_tf.config import Config
from elmo_tf.errors import InputError
from elmo_tf.records import blocks, windows
from elmo_tf.training import cluster, loop
from elmo_tf.training.optimizer import from_config
from elmo_tf.training.step import Trainer
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir, open_workdir
from tests.conftest import SENTENCES
from tests.helpers import MICRO, MICRO_CONFIG, ONE_LAYER, slow


def with_train(**changes) -> Config:
    return dataclasses.replace(MICRO_CONFIG, train=dataclasses.replace(MICRO_CONFIG.train, **changes))


def everything(workdir: Workdir) -> dict[str, np.ndarray]:
    """Returns every array of the newest checkpoint, and its position."""
    path = checkpoints.latest(workdir)
    reader = tf.train.load_checkpoint(str(path / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith("VARIABLE_VALUE")]
    arrays = {name: reader.get_tensor(name) for name in names}
    with np.load(path / "states.npz") as states:
        arrays.update(states)
    return arrays | {"progress": np.array((path / "progress.json").read_text())}


def assert_same(arrays: dict, expected: dict) -> None:
    assert arrays.keys() == expected.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


@pytest.mark.parametrize(
    "recipe", [{}, slow({"optimizer": "adam", "initial_softmax": "log_uniform"}), slow({"optimizer": "muon"})], ids=str
)
def test_a_training_stopped_by_sigterm_ends_bit_for_bit_where_an_uninterrupted_one_does(
    records, tmp_path, monkeypatch, recipe
):
    model = dataclasses.replace(MICRO, char_cnn=ONE_LAYER.char_cnn)
    config = dataclasses.replace(with_train(checkpoint_steps=2, **recipe), model=model)
    whole = loop.train(config, records.path, tmp_path / "whole", steps=19)  # more than an epoch
    real = Trainer.step

    def step(self, window, number, rate):
        if number == 6:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, window, number, rate)

    message = r"^stopped at step 7, checkpoint saved; the same command resumes"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match=message):
        patch.setattr(Trainer, "step", step)
        loop.train(config, records.path, tmp_path / "parts", steps=19)
    assert checkpoints.steps(open_workdir(tmp_path / "parts")) == [4, 6, 7]
    parts = loop.train(config, records.path, tmp_path / "parts", steps=19)
    assert_same(everything(whole), everything(parts))
    assert parts.metrics.read_bytes() == whole.metrics.read_bytes()
    with np.load(checkpoints.latest(whole) / "states.npz") as states:
        assert {len(values) for values in states.values()} == {config.train.batch_size}
    assert sorted(os.listdir(whole.path / "checkpoints")) == ["step-00000016", "step-00000018", "step-00000019"]


def test_another_optimizer_than_the_checkpoints_is_refused(records, copy):
    message = r"train\.optimizer: expected adagrad, as in the workdir's checkpoints, found adam"
    with pytest.raises(InputError, match=message):
        loop.train(with_train(optimizer="adam"), records.path, copy.path, steps=5)


def test_a_signal_is_heard_while_data_is_being_read(records, tmp_path, monkeypatch):
    real, hang = blocks.read_epoch, threading.Event()

    def read_epoch(*arguments):
        for number, block in enumerate(real(*arguments)):
            yield block
            if number == 0:
                threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
                hang.wait(100)

    # Blocks of one sentence: the first is not enough for a window of two streams.
    monkeypatch.setattr(blocks, "_BLOCK_SENTENCES", 1)
    monkeypatch.setattr(windows, "read_epoch", read_epoch)
    try:
        with pytest.raises(KeyboardInterrupt, match=r"^stopped before the first step; the same command resumes"):
            loop.train(MICRO_CONFIG, records.path, tmp_path / "w", steps=10)
    finally:
        hang.set()
    assert checkpoints.latest(open_workdir(tmp_path / "w")) is None


def test_saving_a_step_again_replaces_it_and_sweeps_what_a_killed_process_left(copy):
    for name in (".step-00000007.incomplete", ".step-00000001.removed"):
        (copy.path / "checkpoints" / name).mkdir()
    bilm = checkpoints.restore(copy)[0]
    bilm.softmax.bias.assign(bilm.softmax.bias + 1.0)
    checkpoints.save(copy, bilm, None, Progress(step=3))
    assert [path.name for path in (copy.path / "checkpoints").iterdir()] == ["step-00000003"]
    np.testing.assert_array_equal(checkpoints.restore(copy)[0].softmax.bias, bilm.softmax.bias)


def test_a_workdir_that_is_past_the_end_says_so_and_stays_as_it_is(records, copy, caplog):
    before = everything(copy)
    with caplog.at_level(logging.INFO, "elmo_tf"):
        loop.train(MICRO_CONFIG, records.path, copy.path, steps=1)
    assert "nothing to do: step 3 is done already, and training ends at step 1" in caplog.text
    assert_same(before, everything(copy))


@pytest.mark.slow
def test_epochs_count_every_token_and_one_boundary_a_sentence(records, tmp_path, caplog):
    with caplog.at_level(logging.INFO, "elmo_tf"):
        loop.train(with_train(epochs=1), records.path, tmp_path / "w")
    tokens = sum(len(sentence.split()) + 1 for sentence in SENTENCES)
    assert checkpoints.latest(open_workdir(tmp_path / "w")).name == f"step-{-(-tokens // 10):08d}"
    assert f"{tokens / 10:.1f} steps per epoch, 2 x 5 tokens per step" in caplog.text


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_training_with_its_step_and_no_checkpoint(records, tmp_path):
    workdir = loop.train(with_train(log_steps=1), records.path, tmp_path / "w", steps=1)
    bilm = workdir.new_bilm()
    optimizer = from_config(workdir.config.train, bilm)
    progress = checkpoints.load(workdir, bilm, optimizer.slots)
    bilm.softmax.bias.assign(bilm.softmax.bias * np.nan)
    checkpoints.save(workdir, bilm, optimizer.slots, progress)
    with pytest.raises(InputError, match=r"^train.learning_rate: training diverged at step 2: forward loss nan"):
        loop.train(with_train(log_steps=3, checkpoint_steps=4), records.path, tmp_path / "w", steps=5)
    assert checkpoints.latest(workdir).name == "step-00000001"


@pytest.mark.slow
def test_training_stops_when_the_heldout_perplexity_gets_no_better(records, tmp_path, caplog):
    # With a rate of almost 0, no evaluation is better than the first except by rounding.
    config = with_train(learning_rate=1e-30, checkpoint_steps=2, patience=2)
    with caplog.at_level(logging.INFO, "elmo_tf"):
        workdir = loop.train(config, records.path, tmp_path / "w", heldout=records.path, steps=50)
        assert checkpoints.latest(workdir).name == "step-00000006"
        assert "train.patience: no better held-out perplexity in 2 evaluations" in caplog.text
        loop.train(config, records.path, tmp_path / "w", heldout=records.path, steps=50)
    assert checkpoints.latest(workdir).name == "step-00000006"
    with pytest.raises(InputError, match=r"^train.patience: needs held-out text"):
        loop.train(config, records.path, tmp_path / "w")


def test_the_papers_recipe_changes_that_of_an_existing_workdir_as_set_does(workdir, monkeypatch):
    seen = []
    monkeypatch.setattr(cluster, "from_environment", lambda: None)
    monkeypatch.setattr(loop, "train", lambda config, *_, **__: seen.append(config))
    command = ["train", "--data", "records", "--workdir", str(workdir.path), "--paper-recipe"]
    assert cli.main([*command, "--set", "train.learning_rate=0.1"]) == 0
    recipe = config_lib.override(config_lib.with_paper_recipe(workdir.config), ["train.learning_rate=0.1"]).train
    assert [config.train for config in seen] == [recipe]
