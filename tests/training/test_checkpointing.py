"""When a checkpoint is due: by steps, or by the chief's clock."""

import types

import pytest

from elmo_tf.config import TrainConfig
from elmo_tf.training import checkpointing
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.coordination import OneWorker
from elmo_tf.training.workers import Workers


class TwoWorkers(OneWorker):
    """The chief of two workers that agree."""

    any_every = Workers.any_every


@pytest.mark.parametrize(
    ("step", "seconds", "minutes", "due"),
    [
        (20, 0, 0.0, True),
        (21, 999, 0.0, False),
        (20, 59, 1.0, False),
        (25, 61, 1.0, True),
        (21, 61, 1.0, False),  # workers ask each other only every `log_steps` steps
    ],
)
def test_a_checkpoint_is_due_by_steps_or_by_minutes(monkeypatch, step, seconds, minutes, due):
    clock = types.SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(checkpointing, "time", clock)
    config = TrainConfig(checkpoint_steps=10, log_steps=5, checkpoint_minutes=minutes)
    state = types.SimpleNamespace(step=step, trainer=types.SimpleNamespace(config=config))
    run = Checkpointing(None, state, TwoWorkers())
    clock.monotonic = lambda: 100.0 + seconds
    assert run.due() is due
