"""Learning rates, step by step."""

import dataclasses

import pytest

from elmo_tf.config import TrainConfig
from elmo_tf.training.step import learning_rate


def rates(last_step, **changes):
    config = dataclasses.replace(TrainConfig(learning_rate=0.8), **changes)
    return [learning_rate(config, step, last_step) for step in range(last_step)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [0.8, 0.8, 0.8, 0.8]),  # the paper's
        ({"warmup_steps": 2}, [0.4, 0.8, 0.8, 0.8]),
        ({"decay": "linear"}, [0.8, 0.6, 0.4, 0.2]),
        ({"decay": "linear", "warmup_steps": 2}, [0.4, 0.8, 0.8, 0.4]),
        ({"decay": "cosine"}, [0.8, 0.4 + 0.4 * 0.5**0.5, 0.4, 0.4 - 0.4 * 0.5**0.5]),
        ({"decay": "inverse_sqrt"}, [0.8, 0.8 / 2**0.5, 0.8 / 3**0.5, 0.4]),
        ({"decay": "inverse_sqrt", "warmup_steps": 2}, [0.4, 0.8, 0.8 * (2 / 3) ** 0.5, 0.8 / 2**0.5]),
        ({"decay": "cosine", "warmup_steps": 8}, [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_rates_are_warmed_up_and_decayed(changes, expected):
    assert rates(4, **changes) == pytest.approx(expected)
