"""The learning rate of each step."""

import math

from elmo_tf.config import TrainConfig


def learning_rate(config: TrainConfig, step: int, last_step: int) -> float:
    """Returns the rate of the step that follows `step` steps: `config.learning_rate`, warmed up and decayed.

    Args:
        config: `learning_rate`, `warmup_steps` and `decay` count.
        step: steps made before.
        last_step: steps there will be; `linear` and `cosine` reach 0 there, so another end is another schedule.
    """
    number, warmup = step + 1, config.warmup_steps
    if number <= warmup:
        return config.learning_rate * number / warmup
    left = (last_step - step) / max(1, last_step - warmup)  # 1 after the warm-up, then less, above 0 in the last step
    factors = {
        "none": 1.0,
        "linear": left,
        "cosine": (1 - math.cos(math.pi * left)) / 2,
        "inverse_sqrt": math.sqrt(max(1, warmup) / number),
    }
    return config.learning_rate * factors[config.decay]
