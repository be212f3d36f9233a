"""Resuming with another number of replicas: streams kept where the total is the same, begun afresh where it is not."""

import logging
import types

import numpy as np
import pytest

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.windows import Position
from elmo_tf.training import checkpoints, loop, resuming
from elmo_tf.training.snapshots import Progress
from tests.helpers import two_cpus
from tests.training.commands import losses
from tests.training.test_loop import with_train

POSITION = Position(1, 7, ((b"a", 2), None, (b"b", 1), (b"c", 3)))
PROGRESS = Progress(10, POSITION, "text", (((np.zeros((4, 2)), np.zeros((4, 2))),),) * 2)


def trainer(replicas: int, batch_size: int = 2) -> types.SimpleNamespace:
    """Returns what `resuming` needs of a trainer."""
    return types.SimpleNamespace(
        config=TrainConfig(batch_size=batch_size, unroll_steps=5),
        strategy=types.SimpleNamespace(num_replicas_in_sync=replicas),
        batch_size=replicas * batch_size,
    )


def test_the_same_number_of_streams_goes_on_where_it_was_on_any_number_of_replicas():
    for replicas, batch_size in ((2, 2), (4, 1), (1, 4)):
        assert resuming.with_streams(PROGRESS, trainer(replicas, batch_size), 100, log=True) is PROGRESS


@pytest.mark.parametrize("replicas", [1, 3])
def test_another_number_of_streams_begins_afresh_at_the_next_sentence_and_says_so(caplog, replicas):
    with caplog.at_level(logging.WARNING, "elmo_tf"):
        found = resuming.with_streams(PROGRESS, trainer(replicas), 100, log=True)
    assert found.states is None
    assert found.position == Position(1, 7, (None,) * (2 * replicas))
    # Ten steps of four streams of five tokens are two epochs of a hundred.
    assert (found.step, found.begun_step, found.begun_epochs) == (10, 10, 2.0)
    (line,) = caplog.text.splitlines()
    assert line.endswith(
        f"the checkpoint has 4 streams, and there are {2 * replicas} now: they begin afresh, with zero states, after "
        "sentence 7 of epoch 2"
    )


def test_epochs_add_up_over_several_changes():
    once = resuming.with_streams(PROGRESS, trainer(1), 100, log=False)
    later = Progress(20, POSITION, "text", (((np.zeros((2, 2)),) * 2,),) * 2, once.begun_step, once.begun_epochs)
    # Ten more steps of two streams.
    assert resuming.with_streams(later, trainer(2), 100, log=False).begun_epochs == 3.0


def test_another_batch_on_as_many_replicas_is_refused():
    records = types.SimpleNamespace(path="data")
    begun = TrainConfig(batch_size=2)
    resuming.check(PROGRESS, "text", records, begun, trainer(2))
    resuming.check(PROGRESS, "text", records, begun, trainer(3))
    with pytest.raises(InputError, match=r"^train\.batch_size, .*: expected 4 streams in all.* found 3 x 1 x 2$"):
        resuming.check(PROGRESS, "text", records, begun, trainer(2, 3))
    with pytest.raises(InputError, match=r"^data, train\.seed: expected the records and seed"):
        resuming.check(PROGRESS, "other", records, begun, trainer(2))


@pytest.mark.slow
def test_a_run_goes_on_with_twice_the_replicas_and_ends_after_as_many_epochs(records, tmp_path):
    config = with_train(epochs=2)
    loop.train(config, records.path, tmp_path / "w", steps=13)
    workdir = loop.train(config, records.path, tmp_path / "w", strategy=two_cpus())
    # 128 tokens an epoch: 13 steps of 10 are 1.016 epochs, and the rest are 6.3 steps of 20.
    steps = [line["step"] for line in losses(workdir.path)]
    assert steps == list(range(1, 13 + 7 + 1))
    with np.load(checkpoints.latest(workdir) / "states.npz") as states:
        assert {len(values) for values in states.values()} == {4}
    again = loop.train(config, records.path, tmp_path / "w", strategy=two_cpus())
    assert checkpoints.latest(again).name == "step-00000020"
