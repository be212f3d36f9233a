"""The settings that all systems share: words, spelling, ELMo and training. Each system's recipe adds its network."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from elmo_tf import config as config_lib
from elmo_tf.config import AboveZero, Checked, Count, NotNegative, Positive, Rate
from elmo_tf.errors import InputError

Widths = tuple[Positive, ...]


@dataclasses.dataclass(frozen=True)
class Words(Checked):
    """Word vectors, from a file or learned."""

    dim: Positive = 50  # of a vector; ignored if vectors come from a file
    lower: bool = True  # whether words are looked up in lower case
    trainable: bool = True  # whether vectors from a file are trained; others always are
    # words missing from the file get a trained vector if they occur at least this often in the training data
    min_count: Positive = 2
    normalize: bool = False  # whether vectors from a file are scaled to length 1


@dataclasses.dataclass(frozen=True)
class Spelling(Checked):
    """The system's own small character CNN."""

    filters: Count = 0  # of each width; 0: no character CNN
    dim: Positive = 16  # of a character's vector
    width: Positive = 3  # characters that a filter spans
    more_widths: Widths = ()  # of further filters


@dataclasses.dataclass(frozen=True)
class Elmo(Checked):
    """The biLM's layers, mixed for the task (section 3.3 of the paper)."""

    place: Literal["none", "input", "output", "both"] = "input"  # of the lowest recurrent layer
    mix: Literal["learned", "average", "top"] = "learned"  # "average": as for an infinite lambda; "top": the last layer
    penalty: NotNegative = 0.0  # lambda of `lambda * sum_j w_j^2`
    gamma: float | None = None  # a fixed scale of the mix; null: learned, from 1
    layer_norm: bool = False  # of each layer before it is mixed
    dropout_rate: Rate = 0.5  # of the mixed vectors
    remember: bool = True  # whether each sentence's layers are computed once and kept, at 2 bytes per value


@dataclasses.dataclass(frozen=True)
class Fit(Checked):
    """How a system is trained."""

    batch_size: Positive = 32  # examples
    epochs: Positive = 75  # at most
    patience: Positive = 25  # stop after this many epochs without a better dev score
    judge_every: Positive = 1  # epochs between dev scores; the last epoch is always scored
    optimizer: Literal["adam", "adadelta"] = "adam"
    learning_rate: AboveZero = 0.001
    epsilon: AboveZero = 1e-7  # of the optimizer
    clip_norm: NotNegative = 0.0  # of all gradients together; 0: none
    clip_value: NotNegative = 0.0  # of each element of a gradient; 0: none
    halve_after: Count = 0  # halve the rate after this many dev scores in a row without a new best; 0: never
    decay_rate: AboveZero = 1.0  # factor of the rate after every decay_steps steps
    decay_steps: Positive = 100
    ema: Rate = 0.0  # decay of the weights' moving average, which is then scored and saved; 0: none
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0  # of everything random

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge_every > self.patience:
            raise InputError("judge_every", f"{self.judge_every} is more than patience, {self.patience}")
        if self.clip_norm and self.clip_value:
            raise InputError("clip_value", "cannot be set together with clip_norm")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The settings of every system; a system's own recipe adds the field `network`."""

    words: Words = Words()
    spelling: Spelling = Spelling()
    elmo: Elmo = Elmo()
    fit: Fit = Fit()


def chosen(recipes: dict[str, Recipe], assignments: Sequence[str]) -> Recipe:
    """Returns the first recipe, or that of `recipe=NAME`, with `key=value` strings applied as by `config.override`."""
    prefix = "recipe="
    settings = [assignment for assignment in assignments if not assignment.startswith(prefix)]
    names = [assignment.removeprefix(prefix) for assignment in assignments if assignment.startswith(prefix)]
    name = names[-1] if names else next(iter(recipes))
    if name not in recipes:
        raise InputError("recipe", f"one of {', '.join(recipes)}", repr(name))
    return config_lib.override(recipes[name], settings)
