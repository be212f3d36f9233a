"""The settings that all systems share: words, spelling, ELMo and training. Each system's recipe adds its network."""

import dataclasses
import typing

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError

WIDTHS = "a list of whole numbers, each at least 1"


def require(settings: typing.Any, expected: str, holds: typing.Callable[[typing.Any], bool], *names: str) -> None:
    """Raises `InputError` with the first of the named settings whose value does not hold."""
    for name in names:
        if not holds(value := getattr(settings, name)):
            raise InputError(name, expected, repr(value))


def at_least(least: int, settings: typing.Any, *names: str) -> None:
    """Raises `InputError` with the first of the named settings that is below `least`."""
    require(settings, f"at least {least}", lambda value: value >= least, *names)


def are_widths(value: tuple) -> bool:
    """Whether all items are whole numbers, each at least 1."""
    return all(type(width) is int and width >= 1 for width in value)


@dataclasses.dataclass(frozen=True)
class Words:
    """Word vectors, from a file or learned."""

    dim: int = 50  # of a vector; ignored if vectors come from a file
    lower: bool = True  # whether words are looked up in lower case
    trainable: bool = True  # whether vectors from a file are trained; without a file they always are
    min_count: int = 2  # occurrences in the training data from which a word that the file lacks gets a trained vector
    normalize: bool = False  # whether vectors from a file are scaled to length 1

    def __post_init__(self) -> None:
        at_least(1, self, "dim", "min_count")


@dataclasses.dataclass(frozen=True)
class Spelling:
    """The system's own small character CNN."""

    filters: int = 0  # of each width; 0: no character CNN
    dim: int = 16  # of a character's vector
    width: int = 3  # characters that a filter spans
    more_widths: tuple = ()  # of further filters

    def __post_init__(self) -> None:
        at_least(1, self, "dim", "width")
        at_least(0, self, "filters")
        require(self, WIDTHS, are_widths, "more_widths")


@dataclasses.dataclass(frozen=True)
class Elmo:
    """The biLM's layers, mixed for the task (section 3.3 of the paper)."""

    place: str = "input"  # "input" or "output" of the system's lowest recurrent layer, "both", "none"
    mix: str = "learned"  # "learned", "average" (lambda without limit), "top" (the last layer only)
    penalty: float = 0.0  # lambda of `lambda * sum_j w_j^2`
    layer_norm: bool = False  # of each layer before it is mixed
    dropout_rate: float = 0.5  # of the mixed vectors
    remember: bool = True  # whether each sentence's layers are computed once and kept: 2 bytes a value

    def __post_init__(self) -> None:
        for name, choices in (("place", ("none", "input", "output", "both")), ("mix", ("learned", "average", "top"))):
            require(self, f"one of {', '.join(choices)}", choices.__contains__, name)
        at_least(0, self, "penalty")


@dataclasses.dataclass(frozen=True)
class Fit:
    """How a system is trained."""

    batch_size: int = 32  # examples
    epochs: int = 75  # at most
    patience: int = 25  # epochs without a better dev score after which training stops
    judge_every: int = 1  # epochs between dev scores; the last epoch always has one
    optimizer: str = "adam"  # "adam" or "adadelta"
    learning_rate: float = 0.001
    epsilon: float = 1e-7  # of the optimizer
    clip_norm: float = 0.0  # of all gradients together; 0: none
    clip_value: float = 0.0  # of each element of a gradient; 0: none
    halve_after: int = 0  # dev scores in a row without a better one after which the rate is halved; 0: never
    decay_rate: float = 1.0  # factor of the rate after every decay_steps steps
    decay_steps: int = 100
    ema: float = 0.0  # decay of the weights' moving average, which is then scored and saved; 0: none
    seed: int = 0  # of everything random

    def __post_init__(self) -> None:
        at_least(1, self, "batch_size", "epochs", "patience", "judge_every", "decay_steps")
        at_least(0, self, "clip_norm", "clip_value", "halve_after")
        require(self, "above 0", lambda value: value > 0, "learning_rate", "epsilon", "decay_rate")
        require(self, f"at most patience, {self.patience}", lambda value: value <= self.patience, "judge_every")
        require(self, "0 to 2147483647", lambda value: 0 <= value < 2**31, "seed")
        require(self, "0 where clip_norm is not", lambda value: not (self.clip_norm and value), "clip_value")
        require(self, "0 or more, below 1", lambda value: 0 <= value < 1, "ema")
        require(self, "one of adam, adadelta", ("adam", "adadelta").__contains__, "optimizer")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What all systems have; a system's own recipe adds the field `network`."""

    words: Words = Words()
    spelling: Spelling = Spelling()
    elmo: Elmo = Elmo()
    fit: Fit = Fit()

    def __post_init__(self) -> None:
        for key in config_lib.keys(type(self)):
            section, _, name = key.partition(".")
            value = getattr(getattr(self, section), name)
            if name.endswith("units") and value < 1:
                raise InputError(key, "at least 1", value)
            if name.endswith("dropout_rate") and not 0 <= value < 1:
                raise InputError(key, "0 or more, below 1", value)


def chosen(recipes: dict[str, Recipe], assignments: typing.Sequence[str]) -> Recipe:
    """Returns a system's recipe with `key=value` strings applied; `recipe=NAME` says which recipe to start from.

    Args:
        recipes: by name; the first is the default.
        assignments: as for `config.override`.

    Raises:
        InputError: for an unknown recipe or key (the valid ones are listed), or a value of the wrong type or range.
    """
    settings = [one for one in assignments if not one.startswith("recipe=")]
    names = [one.partition("=")[2] for one in assignments if one.startswith("recipe=")]
    name = names[-1] if names else next(iter(recipes))
    if name not in recipes:
        raise InputError("recipe", f"one of {', '.join(recipes)}", repr(name))
    return config_lib.override(recipes[name], settings)
