"""The learning rate of each step."""

import math

from elmo_tf.config import TrainConfig


def learning_rate(config: TrainConfig, step: int, last_step: int) -> float:
    """Returns the rate of the step after `step` steps, warmed up and decayed.

    `linear` and `cosine` reach 0 after `last_step` steps, the total number.
    """
    number, warmup = step + 1, config.warmup_steps
    if number <= warmup:
        return config.learning_rate * number / warmup
    # From 1 after the warm-up down to a little above 0 in the last step.
    left = (last_step - step) / max(1, last_step - warmup)
    factors = {
        "none": 1.0,
        "linear": left,
        "cosine": (1 - math.cos(math.pi * left)) / 2,
        "inverse_sqrt": math.sqrt(max(1, warmup) / number),
    }
    return config.learning_rate * factors[config.decay]
