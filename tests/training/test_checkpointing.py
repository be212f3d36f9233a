"""When a checkpoint is due, and that training goes on while one is written."""

import threading
import types
from unittest import mock

import pytest

from elmo_tf.config import TrainConfig
from elmo_tf.training import checkpointing
from elmo_tf.training.checkpointing import Checkpointing
from elmo_tf.training.workers import Alone, Workers


class Chief(Workers):
    """The chief of two workers that agree."""

    def __init__(self):
        self.is_chief = True

    def any(self, flag: bool) -> bool:
        return flag


@pytest.mark.parametrize(
    ("step", "seconds", "minutes", "due", "shared"),
    [
        (20, 0, 0.0, True, True),
        (21, 999, 0.0, False, False),
        (20, 59, 1.0, False, False),
        (25, 61, 1.0, True, True),
        (21, 61, 1.0, True, False),  # workers ask each other only every `log_steps` steps
    ],
)
def test_a_checkpoint_is_due_by_steps_or_by_minutes(monkeypatch, step, seconds, minutes, due, shared):
    clock = types.SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(checkpointing, "time", clock)
    config = TrainConfig(checkpoint_steps=10, log_steps=5, checkpoint_minutes=minutes)
    state = types.SimpleNamespace(step=step, trainer=types.SimpleNamespace(config=config))
    runs = Checkpointing(None, state, Alone()), Checkpointing(None, state, Chief())
    clock.monotonic = lambda: 100.0 + seconds
    assert [run.due() for run in runs] == [due, shared]


def test_training_goes_on_while_a_checkpoint_is_written_or_fails(monkeypatch, caplog):
    go, stored, failing = threading.Event(), [], {4}

    def store(_workdir, snapshot, _evaluations):
        assert go.wait(60)
        if snapshot in failing:
            raise OSError("no space")
        stored.append(snapshot)

    monkeypatch.setattr(checkpointing.checkpoints, "store", store)
    monkeypatch.setattr(checkpointing.checkpoint_files, "take_snapshot", lambda *_: state.step)
    trainer = types.SimpleNamespace(bilm=None, optimizer=types.SimpleNamespace(slots={}))
    state = types.SimpleNamespace(trainer=trainer, saved=lambda: state)
    run = Checkpointing(None, state, Alone())
    state.step = 3
    run.save([], must_succeed=False)
    run.poll()
    assert run.saved_step is None
    go.set()
    run.finish()
    assert run.is_saved() and stored == [3]
    state.step = 4
    run.save([], must_succeed=False)
    with monkeypatch.context() as patch:
        patch.setattr(checkpointing.futures, "wait", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.finish()
    assert not run.is_saved()
    message = "the checkpoint of step 4 cannot be written: no space; the newest is of step 3"
    assert caplog.messages == [f"warning: {message}; training continues"]
    with pytest.raises(OSError, match=f"^{message}$"):
        run.save([], must_succeed=True)
