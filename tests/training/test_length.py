"""How long a training is: stored with its workdir, in steps or in epochs, and said when it changes."""

import json

import pytest

from elmo_tf import cli
from elmo_tf.config import TrainConfig, override, preset, with_length
from elmo_tf.errors import InputError
from elmo_tf.training import loop
from elmo_tf.training.finetuning import finetune
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests.training import commands
from tests.training.test_loop import with_train

STEPS_PER_EPOCH = 13  # 128 tokens, 2 streams of 5 in a step


def length(workdir) -> tuple[int | None, int | None]:
    """Returns the stored steps and epochs."""
    train = json.loads((workdir / "config.json").read_text())["train"]
    return train["steps"], train["epochs"]


def last_step(workdir) -> int:
    return checkpoints.steps(open_workdir(workdir))[-1]


def test_the_command_without_steps_trains_to_the_step_that_the_workdir_was_given(
    records, tmp_path, untraced_steps, caplog, capsys
):
    path = tmp_path / "w"
    again = ["train", "--data", str(records.path), "--workdir", str(path)]
    assert cli.main([*commands.arguments(records, path, decay="linear"), "--steps", "4"]) == 0
    assert length(path) == (4, None)
    assert cli.main(again) == 0
    assert last_step(path) == 4 and length(path) == (4, None)
    assert "length changes" not in caplog.text
    # A setting alone would leave two lengths.
    assert cli.main([*again, "--set", "train.epochs=1"]) == 1
    message = "--set train.steps: expected null beside epochs=1: one of them is the length, found 4"
    assert message in capsys.readouterr().err
    assert cli.main([*again, "--epochs", "1"]) == 0
    assert last_step(path) == STEPS_PER_EPOCH and length(path) == (None, 1)
    changed = "warning: this training's length changes from 4 steps to 1 epoch: it ends at step 13"
    assert f"{changed}; the learning rate now decays to 0 by that step" in caplog.messages
    caplog.clear()
    assert cli.main(again) == 0
    assert last_step(path) == STEPS_PER_EPOCH and "length changes" not in caplog.text


def test_a_program_that_resumes_with_the_stored_configuration_trains_to_the_stored_step(
    records, tmp_path, untraced_steps
):
    made = loop.train(with_train(), records.path, tmp_path / "w", steps=3)
    assert made.config.train.steps == 3
    loop.train(open_workdir(made.path).config, records.path, made.path)
    assert last_step(made.path) == 3


def test_finetuning_takes_the_length_of_its_own_workdir_not_the_sources_steps(
    workdir, records, tmp_path, untraced_steps
):
    assert workdir.config.train.steps == 3
    made = finetune(workdir.path, records.path, tmp_path / "new", ["train.epochs=1"])
    assert last_step(made.path) == STEPS_PER_EPOCH
    finetune(workdir.path, records.path, tmp_path / "new", steps=14)
    finetune(workdir.path, records.path, tmp_path / "new")
    assert last_step(made.path) == 14 and length(made.path) == (14, None)


def test_a_length_is_either_steps_or_epochs():
    assert with_length(preset("tiny"), steps=7).train.epochs is None
    with pytest.raises(InputError, match=r"^train\.steps: expected null beside epochs=10: one of them is the length"):
        override(preset("tiny"), ["train.steps=7"])
    with pytest.raises(InputError, match=r"^steps: expected a number, as epochs is null: one of them is the length"):
        TrainConfig(epochs=None)
