"""Resuming with another number of replicas: streams kept where the total is the same, started over where it is not."""

import logging
import types

import numpy as np
import pytest
from msgspec.structs import replace

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.windows import Position
from elmo_tf.training import loop, state
from elmo_tf.training.state import TrainState
from elmo_tf.workdir.checkpoint_files import Progress
from tests import checks
from tests.helpers import two_cpus
from tests.training.commands import losses
from tests.training.test_loop import with_train

POSITION = Position(1, 7, ((b"a", 2), None, (b"b", 1), (b"c", 3)))
PROGRESS = Progress(10, POSITION, "text", states=(((np.zeros((4, 2)), np.zeros((4, 2))),),) * 2)
STORED = TrainConfig(batch_size=2, unroll_steps=5)


def resumed(
    progress: Progress, replicas: int, batch_size: int = 2, unroll_steps: int = 5, data_id: str = "text"
) -> Progress:
    """Returns the progress of a run on a text of a hundred tokens."""
    trainer = types.SimpleNamespace(
        config=TrainConfig(batch_size=batch_size, unroll_steps=unroll_steps),
        strategy=types.SimpleNamespace(num_replicas_in_sync=replicas),
        batch_size=replicas * batch_size,
    )
    records = types.SimpleNamespace(path="data", num_tokens=100, text_id=lambda seed: data_id)
    return state.resumed(progress, STORED, TrainState(trainer, records))


def test_the_same_number_of_streams_goes_on_where_it_was_on_any_number_of_replicas():
    for replicas, batch_size in ((2, 2), (4, 1), (1, 4)):
        assert resumed(PROGRESS, replicas, batch_size) is PROGRESS


@pytest.mark.parametrize("replicas", [1, 3])
def test_another_number_of_streams_starts_over_at_the_next_sentence_and_says_so(caplog, replicas):
    with caplog.at_level(logging.WARNING, "elmo_tf"):
        progress = resumed(PROGRESS, replicas)
    assert progress.states is None
    assert progress.position == Position(1, 7, (None,) * (2 * replicas))
    # Ten steps of four streams of five tokens are two epochs of a hundred.
    assert (progress.step, progress.offset_step, progress.epoch_offset) == (10, 10, 2.0)
    (line,) = caplog.text.splitlines()
    assert line.endswith(
        f"the checkpoint has 4 streams, and there are {2 * replicas} now: they start over, with zero states, after "
        "sentence 7 of epoch 2"
    )


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_epochs_are_counted_by_the_steps_that_were_made_when_their_length_changes(replicas):
    progress = resumed(PROGRESS, replicas, unroll_steps=11)
    assert (progress.offset_step, progress.epoch_offset) == (10, 2.0)
    assert (progress.states is None) == (replicas != 2)
    # The recipe says 5, but the checkpoint was made with 8: a run that saved nothing may have changed the recipe.
    stored = replace(PROGRESS, unroll_steps=8)
    assert resumed(stored, replicas, unroll_steps=11).epoch_offset == 3.2


def test_epochs_add_up_over_several_changes_and_steps_and_epochs_stay_inverse_to_each_other():
    states = (((np.zeros((2, 2)),) * 2,),) * 2
    later = replace(resumed(PROGRESS, 1), step=20, states=states)
    assert resumed(later, 2).epoch_offset == 3.0
    progress, steps_per_epoch = Progress(12, offset_step=10, epoch_offset=2.0), 100 / 8
    assert progress.epochs_at(35, steps_per_epoch) == 4.0
    assert (progress.step_after(4.0, steps_per_epoch), progress.step_after(4.01, steps_per_epoch)) == (35, 36)


def test_another_batch_on_as_many_replicas_is_refused():
    with pytest.raises(InputError, match=r"^train\.batch_size, strategy: expected 4 streams in all.* found 3 x 2$"):
        resumed(PROGRESS, 2, 3)
    with pytest.raises(InputError, match=r"^data, train\.seed: this workdir was trained on other records"):
        resumed(PROGRESS, 2, data_id="other")


@pytest.mark.slow
def test_a_run_of_two_replicas_goes_on_with_one_that_has_all_their_streams_as_if_it_always_had(
    records, tmp_path, caplog
):
    """Nothing is random, so that the replicas' draws do not matter. The second run evaluates in other streams."""
    exact = {"num_sampled": 0, "dropout_rate": 0.0, "checkpoint_steps": 3, "eval_tokens": 20}
    on_one, on_two = with_train(batch_size=4, **exact), with_train(batch_size=2, **exact)
    path = tmp_path / "w"
    loop.train(on_two, records.path, path, records.path, steps=4, strategy=two_cpus())
    assert "earlier evaluations" not in caplog.text
    loop.train(on_one, records.path, path, records.path, steps=8)
    assert "start over" not in caplog.text
    assert "warning: earlier evaluations used another held-out text, another part of it, or another" in caplog.text
    alone = loop.train(on_one, records.path, tmp_path / "alone", steps=8)
    values, expected = ([list(line.values()) for line in losses(folder)] for folder in (path, alone.path))
    np.testing.assert_allclose(values, expected, **checks.TOLERANCE)
