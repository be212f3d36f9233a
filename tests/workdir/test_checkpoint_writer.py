"""Checkpoints written while training goes on: from a copy, one after the other, and what happens when one fails."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.config import TrainConfig
from elmo_tf.training import optimizer as optimizers
from elmo_tf.workdir import checkpoint_files, checkpoints
from elmo_tf.workdir.checkpoint_files import Progress, Snapshot
from elmo_tf.workdir.checkpoint_writer import CheckpointWriter
from tests.helpers import MICRO


def snapshot(step: int) -> Snapshot:
    return Snapshot({}, Progress(step))


@pytest.fixture
def stored(monkeypatch):
    """Steps that were stored; those in `failing` raise, and all of them wait for `go`."""
    seen = {"steps": [], "failing": set(), "go": threading.Event()}

    def store(_workdir, taken, _evaluations):
        assert seen["go"].wait(60)
        if taken.progress.step in seen["failing"]:
            raise OSError("no space")
        seen["steps"].append(taken.progress.step)

    monkeypatch.setattr(checkpoints, "store", store)
    return seen


def test_training_goes_on_while_a_checkpoint_is_written(stored):
    writer = CheckpointWriter(None)
    writer.start(snapshot(3), [])
    assert writer.busy and writer.saved_step is None
    stored["go"].set()
    writer.finish()
    assert not writer.busy and writer.saved_step == 3 and stored["steps"] == [3]
    writer.finish()
    assert writer.saved_step == 3


def test_a_checkpoint_that_fails_is_reported_once_and_the_one_before_stays_the_newest(stored):
    writer = CheckpointWriter(None)
    writer.saved_step = 2
    stored["go"].set()
    stored["failing"].add(4)
    writer.start(snapshot(4), [])
    with pytest.raises(OSError, match=r"^the checkpoint of step 4 cannot be written: no space$"):
        writer.finish()
    writer.finish()
    assert writer.saved_step == 2
    writer.start(snapshot(6), [])
    writer.finish()
    assert writer.saved_step == 6


@pytest.mark.parametrize("name", ["adagrad", "adam", "muon"])
def test_a_step_after_the_copy_does_not_change_what_is_written(tmp_path, name):
    """The steps update rows and whole variables with the operations of training."""
    bilm = BiLM(MICRO, 20)
    variables = [variable.value for variable in bilm.trainable_variables]
    optimizer = optimizers.from_config(TrainConfig(optimizer=name), bilm)
    optimizer.set_learning_rate(0.5, 0)
    stored = [*variables, *(value for slot in optimizer.slots.values() for value in slot)]
    unused = [value for value in optimizer.slots.get("squares", []) if value.shape.rank == 0]

    def update():
        for number, variable in enumerate(variables):
            if variable is bilm.softmax.kernel.value:  # only some rows
                rows = tf.ones((2, variable.shape[1]))
                optimizer._update_rows(variable, *optimizer._slots(number), rows, tf.constant([3, 5]))
            else:
                gradient = tf.random.stateless_normal(variable.shape, (number, 0))
                optimizer._dense_update(number)(variable, *optimizer._slots(number), gradient)

    update()
    before = [value.numpy() for value in stored]
    taken = checkpoint_files.take_snapshot(bilm, optimizer.slots, Progress(7))
    assert taken.num_bytes == checkpoint_files.num_bytes(bilm, optimizer.slots, None)
    update()
    checkpoint_files.write(tmp_path / "checkpoint", taken)
    changed = [(old != new.numpy()).any() for old, new in zip(before, stored, strict=True)]
    assert changed == [all(new is not one for one in unused) for new in stored]
    assert checkpoint_files.read(tmp_path / "checkpoint", bilm, optimizer.slots).step == 7
    for old, new in zip(before, stored, strict=True):
        np.testing.assert_array_equal(new.numpy(), old)
