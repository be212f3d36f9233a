"""A run that is killed again and again ends where one that is not does, bit for bit."""

import os
import random
import re
import time

import numpy as np
import pytest

from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests.training import commands

pytestmark = pytest.mark.slow

STEPS = 90  # seven epochs
RECIPE = {"checkpoint_steps": 5, "log_steps": 3, "decay": "cosine", "warmup_steps": 5}


def command(records, workdir):
    return [*commands.arguments(records, workdir, **RECIPE), "--heldout", str(records.path), "--steps", str(STEPS)]


@pytest.fixture(scope="module")
def killed(records, tmp_path_factory):
    """A workdir whose run was killed at any moment, inside a save, and then came to its end; and what the save left."""
    folder = tmp_path_factory.mktemp("killed")
    workdir, log = folder / "workdir", folder / "log"
    saves = workdir / "checkpoints"

    def steps():
        return len(commands.losses(workdir))

    def kill(when, wait=0.0):
        """Starts the command and kills it `wait` seconds after `when()` holds."""
        process = commands.start(command(records, workdir), log)
        commands.wait_until(when, [process], [log])
        time.sleep(wait)
        process.kill()
        process.wait()

    kill(lambda: steps() > 10, wait=random.random() * 0.1)
    before = steps()
    kill(lambda: steps() > before + 10 and any(saves.glob(".*.incomplete")))
    left = [path.name for path in saves.glob(".*")]
    assert commands.start(command(records, workdir), log).wait() == 0, log.read_text()
    return open_workdir(workdir), left, log.read_text()


@pytest.fixture(scope="module")
def whole(records, tmp_path_factory):
    """The workdir of the same run, left alone."""
    folder = tmp_path_factory.mktemp("whole")
    process = commands.start(command(records, folder / "workdir"), folder / "log")
    assert process.wait() == 0, (folder / "log").read_text()
    return open_workdir(folder / "workdir")


def test_it_was_killed_and_resumed_from_a_checkpoint_each_time(killed):
    _, left, log = killed
    assert len(left) == 1 and left[0].endswith(".incomplete")
    begins = [int(step) for step in re.findall(r"training: step (\d+) ", log)]
    assert len(begins) == 3 and 0 == begins[0] < begins[1] < begins[2] < STEPS


def test_every_step_of_a_killed_run_has_the_losses_of_one_left_alone(killed, whole):
    lines = whole.metrics.read_bytes().splitlines()
    assert len(commands.losses(whole.path)) == STEPS and len(lines) == STEPS + STEPS // 5
    assert killed[0].metrics.read_bytes().splitlines() == lines


def test_a_killed_run_ends_with_the_weights_and_states_of_one_left_alone(killed, whole):
    ours, theirs = (os.listdir(run.path / "checkpoints") for run in (killed[0], whole))
    assert sorted(ours) == sorted(theirs)
    for name in ("states.npz", "progress.json"):
        assert (checkpoints.latest(killed[0]) / name).read_bytes() == (checkpoints.latest(whole) / name).read_bytes()
    for one, other in zip(
        *(checkpoints.restore(run)[0].trainable_variables for run in (killed[0], whole)), strict=True
    ):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
