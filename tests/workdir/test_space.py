"""Memory and disk space that are missing: warnings before the first step, errors in plain words."""

import shutil
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import cli
from elmo_tf.errors import InputError, explain_out_of_memory
from elmo_tf.training import evaluation, loop
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import Trainer
from elmo_tf.training.workers import Alone
from elmo_tf.workdir import checkpoint_files, checkpoints
from tests.beam.common import small_disk
from tests.helpers import MICRO_CONFIG


def test_the_size_of_a_checkpoint_is_known_before(workdir):
    bilm = workdir.new_bilm()
    optimizer = optimizers.from_config(workdir.config.train, bilm)
    states = bilm.zero_states(workdir.config.train.batch_size)
    size = checkpoint_files.num_bytes(bilm, optimizer.slots, states)
    # Weights and accumulators, and two states of 24 and 8 for each of two streams, directions and layers.
    assert size == 4 * (2 * bilm.count_params() + 2 * 2 * 2 * (24 + 8))
    assert 0 < sum(path.stat().st_size for path in checkpoints.latest(workdir).iterdir()) - size < 20_000


@pytest.mark.parametrize(("there", "more"), [(0, 4), (5, 1)])
def test_too_little_disk_space_is_a_warning(records, workdir, monkeypatch, caplog, there, more):
    """Three checkpoints are kept, and a fourth exists while it is written."""
    monkeypatch.setattr(checkpoints, "steps", lambda _: list(range(there)))
    trainer = Trainer(tf.distribute.MirroredStrategy(["CPU:0"]), workdir.config.train, workdir.new_bilm)
    checkpointing = Checkpointing(workdir, TrainState(trainer, records), Alone())
    for free in (more * checkpointing.num_bytes, more * checkpointing.num_bytes - 1):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: types.SimpleNamespace(free=free))
        assert not caplog.messages
        checkpointing.warn_of_little_space(evaluated=False)
    needed, size = (f"{number / 1e6:.1f}" for number in (more * checkpointing.num_bytes, free))
    expected = f"(3, and one being written) need {needed} MB more, but only {size} MB are free in {workdir.path}"
    assert caplog.messages[0].endswith(expected)


def test_a_checkpoint_that_does_not_fit_on_the_disk_fails_in_plain_words(records, tmp_path, untraced_steps):
    with small_disk(tmp_path / "disk", "1m") as disk, pytest.raises(OSError) as caught:
        (disk / "filler").write_bytes(bytes(10**6 - 60_000))
        loop.train(MICRO_CONFIG, records.path, disk / "w", steps=1)
    message = str(caught.value)
    assert message.startswith("the checkpoint of step 1 cannot be written: ")
    assert "No space left on device" in message and message.endswith("; there is no other")
    assert "{{" not in message and "SaveV2" not in message


def raised(error: Exception) -> None:
    raise error


# What TensorFlow raises; it would wait ten seconds for memory before it gives up.
OOM = (
    "{{function_node __wrapped__Fill}} OOM when allocating tensor with shape[2560,793471] and type float on "
    "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu [Op:Fill] name: "
)


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: raised(tf.errors.ResourceExhaustedError(None, None, OOM)),
        lambda: np.zeros((2**20, 2**30)),
        lambda: raised(RuntimeError("std::bad_alloc")),
    ],
    ids=["tensorflow", "numpy", "bad_alloc"],
)
def test_errors_about_memory_become_one_plain_line(allocate):
    message = r"^batch_size: too little memory; set fewer streams \(.*(OOM|allocate|bad_alloc).*\)$"
    with pytest.raises(InputError, match=message) as caught, explain_out_of_memory("batch_size", "set fewer streams"):
        allocate()
    assert not any(word in str(caught.value) for word in ("{{", "\n", "/job:", "[Op:"))


@pytest.mark.parametrize(
    "error",
    [
        InputError("data", "records", "none"),
        KeyError("memory"),
        tf.errors.ResourceExhaustedError(None, None, "/w/x; No space left on device"),
    ],
)
def test_other_errors_stay_as_they_are(error):
    with pytest.raises(type(error)) as caught, explain_out_of_memory():
        raise error
    assert caught.value is error


def test_train_and_evaluate_name_the_settings_that_help(records, workdir, tmp_path, monkeypatch, capsys):
    error = tf.errors.ResourceExhaustedError(None, None, OOM)
    monkeypatch.setattr(Trainer, "step", mock.Mock(side_effect=error))
    monkeypatch.setattr(evaluation.Evaluator, "parts", mock.Mock(side_effect=error))
    train = ["train", "--data", str(records.path), "--preset", "tiny", "--workdir", str(tmp_path / "w"), "--steps", "1"]
    train += ["--set", "train.precision=float32"]
    assert cli.main(train) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("elmo-tf: error: --set train.batch_size, --set train.num_sampled, --set model.lstm.units: ")
    assert "too little memory; set smaller values (OOM when allocating tensor with shape[2560,793471] and" in last
    assert cli.main(["evaluate", "--data", str(records.path), "--workdir", str(workdir.path)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("elmo-tf: error: --batch-size: too little memory; set fewer streams (OOM when")
