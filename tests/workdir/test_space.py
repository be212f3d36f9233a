"""Memory and disk space that are missing: warnings before the first step, errors in plain words."""

import errno
import logging
import os
import types

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import cli
from elmo_tf.errors import InputError, memory_explained
from elmo_tf.training import evaluation, loop
from elmo_tf.training import optimizer as optimizers
from elmo_tf.workdir import checkpoint_files, checkpoints, space
from elmo_tf.workdir.folder import Workdir
from tests.helpers import MICRO_CONFIG
from tests.training.test_loop import with_train


def have_free(monkeypatch, free: list[int]) -> None:
    """Has the disk as many free bytes as the list says, which the test may change."""
    monkeypatch.setattr(space.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=free[0]))


def test_the_size_of_a_checkpoint_is_known_before(workdir):
    bilm = workdir.new_bilm()
    optimizer = optimizers.from_config(workdir.config.train, bilm)
    states = bilm.zero_states(workdir.config.train.batch_size)
    size = checkpoint_files.num_bytes(bilm, optimizer.slots, states)
    # Weights and accumulators, and two states of 24 and 8 for each of two streams, directions and layers.
    assert size == 4 * (2 * bilm.count_params() + 2 * 2 * 2 * (24 + 8))
    assert 0 < sum(path.stat().st_size for path in checkpoints.latest(workdir).iterdir()) - size < 20_000


@pytest.mark.parametrize(("steps", "more"), [(1, 1), (2, 2), (9, 4)])
def test_too_little_disk_space_is_a_warning_before_the_first_step(records, tmp_path, monkeypatch, caplog, steps, more):
    # Three are kept, and one more is there while it is written; a run of fewer steps makes fewer.
    size = 4 * (2 * MICRO_CONFIG.model.num_parameters(len(records.vocabulary)) + 2 * 2 * 2 * (24 + 8))
    config, free = with_train(checkpoint_steps=1), [more * size]
    have_free(monkeypatch, free)
    seen = []

    def step(self, *_):
        seen.append(caplog.text)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop.Trainer, "step", step)
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "elmo_tf"), pytest.raises(KeyboardInterrupt):
            loop.train(config, records.path, tmp_path / "w", steps=steps)
        free[0] -= 1
    assert "warning" not in seen[0]
    megabytes = [f"{number / 1e6:.1f}" for number in (size, more * size, more * size - 1)]
    expected = f"warning: a checkpoint takes {megabytes[0]} MB; {more} more (3 are kept, plus one being written) take "
    expected += f"{megabytes[1]} MB, but only {megabytes[2]} MB are free in {tmp_path / 'w'}"
    assert expected in seen[1]


@pytest.mark.slow
def test_checkpoints_that_are_there_need_no_space(workdir, records, tmp_path, monkeypatch, caplog):
    """In a workdir with all that it keeps, the only one more is the one that is being written."""
    config = with_train(checkpoint_steps=1)
    loop.train(config, records.path, tmp_path / "w", steps=4)
    have_free(monkeypatch, [0])
    with caplog.at_level(logging.WARNING, "elmo_tf"):
        loop.train(config, records.path, tmp_path / "w", steps=8)
    assert "; 1 more (3 are kept" in caplog.text


def test_a_checkpoint_that_does_not_fit_on_the_disk_fails_in_plain_words(small_disk, records):
    (small_disk / "filler").write_bytes(bytes(10**6))
    with pytest.raises(OSError) as caught:
        loop.train(MICRO_CONFIG, records.path, small_disk / "w", steps=1)
    message = str(caught.value)
    assert message.startswith(
        "the checkpoint of step 1 cannot be written: the disk is full (No space left on device): "
    )
    assert "a checkpoint takes 0.1 MB, 0.0 MB are free in " in message and message.endswith("; there is none")
    assert "{{" not in message and "SaveV2" not in message


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("{{function_node __wrapped__SaveV2_x}} /w/variables; No space left on device [Op:SaveV2]", errno.ENOSPC),
        ("{{function_node __wrapped__SaveV2_x}} /w/variables; Permission denied [Op:SaveV2]", None),
    ],
)
def test_tensorflows_errors_about_files_lose_the_names_of_operations(error, expected):
    found = space.os_error(tf.errors.UnknownError(None, None, error))
    assert found.errno == expected
    assert (found.strerror or str(found)).startswith("/w/variables; ") and "SaveV2" not in str(found)


HUGE = (2**20, 2**30)
OUT_OF_MEMORY = {
    "tensorflow": lambda: tf.zeros(HUGE),
    "numpy": lambda: np.zeros(HUGE),
    "bad_alloc": lambda: (_ for _ in ()).throw(RuntimeError("std::bad_alloc")),
}


@pytest.mark.parametrize(
    "allocate",
    # TensorFlow waits ten seconds for memory before it gives up.
    [pytest.param(one, marks=pytest.mark.slow if name == "tensorflow" else ()) for name, one in OUT_OF_MEMORY.items()],
    ids=OUT_OF_MEMORY,
)
def test_errors_about_memory_become_one_plain_line(allocate):
    message = r"^batch_size: expected fewer streams, found too little memory: .*(OOM|allocate|bad_alloc).*$"
    with pytest.raises(InputError, match=message) as caught, memory_explained("batch_size", "fewer streams"):
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
    with pytest.raises(type(error)) as caught, memory_explained():
        raise error
    assert caught.value is error


def out_of_memory(*_, **__):
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[2560,793471]")


def test_train_and_evaluate_name_the_settings_that_help(records, workdir, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loop.Trainer, "step", out_of_memory)
    monkeypatch.setattr(evaluation.Evaluator, "parts", out_of_memory)
    train = ["train", "--data", str(records.path), "--preset", "tiny", "--workdir", str(tmp_path / "w"), "--steps", "1"]
    train += ["--set", "train.precision=float32"]
    assert cli.main(train) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("elmo-tf: error: --set train.batch_size, --set train.num_sampled, --set model.lstm.units: ")
    assert last.endswith("found too little memory: OOM when allocating tensor with shape[2560,793471]")
    assert cli.main(["evaluate", "--data", str(records.path), "--workdir", str(workdir.path)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("elmo-tf: error: --batch-size: expected fewer streams, found too little memory: OOM when")


def test_any_command_explains_an_error_about_memory(monkeypatch, tmp_path, workdir, capsys):
    monkeypatch.setattr(Workdir, "trained", out_of_memory)
    assert cli.main(["dump-weights", "--workdir", str(workdir.path), "--output", str(tmp_path / "x")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "elmo-tf: error: memory: expected enough of it for this command, found too little memory: OOM"
    )


def test_a_full_disk_that_python_reports_is_explained_too(tmp_path):
    error = space.explained(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"), tmp_path, 374_400_000)
    assert str(error).startswith("the disk is full (No space left on device): a checkpoint takes 374 MB, ")
    other = OSError(errno.EACCES, os.strerror(errno.EACCES), "x")
    assert space.explained(other, tmp_path, 1) is other
