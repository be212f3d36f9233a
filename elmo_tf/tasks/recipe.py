"""What all systems can set: words, spelling, ELMo and how they are trained. A system's recipe adds its network."""

import dataclasses
import typing

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError

PLACES = ("none", "input", "output", "both")
MIXES = ("learned", "average", "top")
OPTIMIZERS = ("adam", "adadelta")
_RECIPE = "recipe"


def _require(name: str, value: typing.Any, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError(name, expected, repr(value))


@dataclasses.dataclass(frozen=True)
class Words:
    """Vectors of words, from a file or learned."""

    dim: int = 50  # of a vector; with a file of vectors, its own
    lower: bool = True  # whether words are looked up in lower case
    trainable: bool = True  # whether the vectors of a file are learned further; without a file they always are
    min_count: int = 2  # a training word that occurs so often and is not in the file gets a vector, if they are learned
    normalize: bool = False  # whether the vectors of a file are brought to length 1


@dataclasses.dataclass(frozen=True)
class Spelling:
    """A small character CNN of the system's own."""

    filters: int = 0  # of each width; 0: none
    dim: int = 16  # of a character's vector
    width: int = 3  # characters that a filter sees
    more_widths: tuple = ()  # of further filters


@dataclasses.dataclass(frozen=True)
class Elmo:
    """The biLM's layers, mixed for the task (section 3.3 of the paper)."""

    place: str = "input"  # "input" or "output" of the system's lowest recurrent layer, "both", "none"
    mix: str = "learned"  # "learned", "average" (lambda without limit), "top" (the last layer only)
    penalty: float = 0.0  # lambda of `lambda * sum_j w_j^2`
    layer_norm: bool = False  # of each layer before it is mixed
    dropout_rate: float = 0.5  # of the mixed vectors
    remember: bool = True  # whether the layers of each sentence are computed once and kept: 2 bytes a value


@dataclasses.dataclass(frozen=True)
class Fit:
    """How a system is trained."""

    batch_size: int = 32  # examples
    epochs: int = 75  # at most
    patience: int = 25  # epochs without a better dev score after which it ends
    judge_every: int = 1  # epochs between dev scores; the last epoch has one too
    optimizer: str = "adam"  # "adam" or "adadelta"
    learning_rate: float = 0.001
    epsilon: float = 1e-7  # of the optimizer
    clip_norm: float = 0.0  # of all gradients together; 0: none
    clip_value: float = 0.0  # of each number of a gradient; 0: none
    halve_after: int = 0  # judged epochs without a better dev score after which the rate is halved; 0: never
    decay_rate: float = 1.0  # factor of the rate after every decay_steps steps
    decay_steps: int = 100
    ema: float = 0.0  # decay of the weights' moving average, which is then judged and kept; 0: none
    seed: int = 0  # of everything random

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "patience", "judge_every", "decay_steps"):
            _require(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("learning_rate", "epsilon", "decay_rate"):
            _require(name, getattr(self, name), getattr(self, name) > 0, "above 0")
        for name in ("clip_norm", "clip_value", "halve_after"):
            _require(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")
        _require(
            "judge_every", self.judge_every, self.judge_every <= self.patience, f"at most patience, {self.patience}"
        )
        _require("seed", self.seed, 0 <= self.seed < 2**31, "0 to 2147483647")
        _require("clip_value", self.clip_value, not (self.clip_norm and self.clip_value), "0 where clip_norm is not")
        _require("ema", self.ema, 0 <= self.ema < 1, "0 or more, below 1")
        _require("optimizer", self.optimizer, self.optimizer in OPTIMIZERS, f"one of {', '.join(OPTIMIZERS)}")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What all systems have; a system's own recipe adds a field `network`."""

    words: Words = Words()
    spelling: Spelling = Spelling()
    elmo: Elmo = Elmo()
    fit: Fit = Fit()

    def __post_init__(self) -> None:
        for name in ("words.dim", "words.min_count", "spelling.dim", "spelling.width"):
            _require(name, _value(self, name), _value(self, name) >= 1, "at least 1")
        _require("spelling.filters", self.spelling.filters, self.spelling.filters >= 0, "at least 0")
        more = self.spelling.more_widths
        every = all(type(width) is int and width >= 1 for width in more)
        _require("spelling.more_widths", list(more), every, "a list of whole numbers, each at least 1")
        for name, choices in (("elmo.place", PLACES), ("elmo.mix", MIXES)):
            _require(name, _value(self, name), _value(self, name) in choices, f"one of {', '.join(choices)}")
        _require("elmo.penalty", self.elmo.penalty, self.elmo.penalty >= 0, "at least 0")
        for name in (key for key in config_lib.keys(type(self)) if key.endswith("units")):
            _require(name, _value(self, name), _value(self, name) >= 1, "at least 1")
        rates = [key for key, kind in config_lib.keys(type(self)).items() if key.endswith("dropout_rate")]
        for name in rates:
            _require(name, _value(self, name), 0 <= _value(self, name) < 1, "0 or more, below 1")


def chosen(recipes: dict[str, Recipe], assignments: typing.Sequence[str]) -> Recipe:
    """Returns a system's recipe with `key=value` strings applied; `recipe=NAME` is which one to start from.

    Args:
        recipes: by name; the first is the default.
        assignments: as for `config.override`.

    Raises:
        InputError: for an unknown recipe or key (the valid ones are listed), or a value of the wrong type or range.
    """
    named = [one.partition("=")[2] for one in assignments if one.partition("=")[0] == _RECIPE]
    others = [one for one in assignments if one.partition("=")[0] != _RECIPE]
    name = named[-1] if named else next(iter(recipes))
    _require(_RECIPE, name, name in recipes, f"one of {', '.join(recipes)}")
    return config_lib.override(recipes[name], others)


def _value(recipe: Recipe, key: str) -> typing.Any:
    section, name = key.split(".")
    return getattr(getattr(recipe, section), name)
