"""The settings of a model and its training: frozen dataclasses, presets as data, JSON, `key=value` overrides."""

import dataclasses
import functools
import json
import math
import sys
import typing

from elmo_tf.errors import InputError, suggestion

OPTIMIZERS = ("adagrad", "adam", "muon")
PRECISIONS = ("float32", "bfloat16", "auto")
INITIAL_SOFTMAX = ("normal", "log_uniform")
DECAYS = ("none", "linear", "cosine", "inverse_sqrt")
_Config = typing.TypeVar("_Config")
_MOST_LAYERS = 100
_CHARACTERS = 261  # rows of the character table that are trained

# What a person calls the types of JSON.
_KINDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a string", tuple: "a list"}
_KINDS[type(None)] = "null"


def _require(name: str, value: typing.Any, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError(name, expected, repr(value))


@dataclasses.dataclass(frozen=True)
class CharCNNConfig:
    """The context-free token encoder (Peters et al. 2018, section 3.4; Kim et al. 2015)."""

    embedding_dim: int = 16  # width of a character's vector
    # (width in characters, number of filters) of each convolution
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    num_highway: int = 2  # highway layers after the max-pool
    activation: str = "relu"  # activation function after the max-pool: "relu" or "tanh"
    max_chars_per_token: int = 50  # ids per token, begin- and end-word marks included

    def __post_init__(self) -> None:
        filters = tuple(tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in self.filters)
        object.__setattr__(self, "filters", filters)
        _require("embedding_dim", self.embedding_dim, self.embedding_dim >= 1, "at least 1")
        _require("max_chars_per_token", self.max_chars_per_token, 3 <= self.max_chars_per_token <= 257, "3 to 257")
        good = filters and all(
            isinstance(pair, tuple)
            and len(pair) == 2
            and all(type(n) is int and n >= 1 for n in pair)
            and pair[0] <= self.max_chars_per_token
            for pair in filters
        )
        _require("filters", filters, bool(good), "a list of [width, count], no width above max_chars_per_token")
        _require("num_highway", self.num_highway, 0 <= self.num_highway <= _MOST_LAYERS, f"0 to {_MOST_LAYERS}")
        _require("activation", self.activation, self.activation in ("relu", "tanh"), "'relu' or 'tanh'")

    @property
    def num_filters(self) -> int:
        """Width of the vector that the max-pool returns."""
        return sum(count for _, count in self.filters)


@dataclasses.dataclass(frozen=True)
class LSTMConfig:
    """One direction's stack of projected LSTMs (section 3.4 of the paper; Sak et al. 2014)."""

    units: int = 4096  # cells per layer
    projection_dim: int = 512  # width of the token vector and of each layer's output; equal to `units`: no projection
    num_layers: int = 2  # LSTM layers of each direction
    cell_clip: float | None = 3.0  # the cell state is clipped to +-this; null: no clipping
    proj_clip: float | None = 3.0  # the projected output is clipped to +-this; null: no clipping
    use_skip_connections: bool = True  # every layer but the first adds its input to its output

    def __post_init__(self) -> None:
        for name in ("units", "projection_dim", "num_layers"):
            _require(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        _require("num_layers", self.num_layers, self.num_layers <= _MOST_LAYERS, f"1 to {_MOST_LAYERS}")
        expected = f"at most units, {self.units}"
        _require("projection_dim", self.projection_dim, self.projection_dim <= self.units, expected)
        for name in ("cell_clip", "proj_clip"):
            value = getattr(self, name)
            _require(name, value, value is None or value > 0, "above 0, or null")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network, without its softmax."""

    char_cnn: CharCNNConfig = CharCNNConfig()
    lstm: LSTMConfig = LSTMConfig()

    def num_parameters(self, vocab_size: int | None = None) -> int:
        """Returns how many numbers the network's weights are, with a softmax of `vocab_size` words or without one."""
        char_cnn, units, width = self.char_cnn, self.lstm.units, self.lstm.projection_dim
        tokens = char_cnn.num_filters
        convolutions = sum(count * (span * char_cnn.embedding_dim + 1) for span, count in char_cnn.filters)
        highway = 2 * tokens * (tokens + 1)
        encoder = _CHARACTERS * char_cnn.embedding_dim + convolutions + char_cnn.num_highway * highway
        projection = units * width if width < units else 0
        layer = 4 * units * (2 * width + 1) + projection
        softmax = (vocab_size or 0) * (width + 1)
        return encoder + (tokens + 1) * width + 2 * self.lstm.num_layers * layer + softmax


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """The recipe; the defaults are those of the released model (bilm-tf, `bin/train_elmo.py`)."""

    batch_size: int = 128  # streams per replica
    unroll_steps: int = 20  # tokens per window; the gradient reaches back no further
    epochs: int = 10  # passes over the corpus
    optimizer: str = "adagrad"  # "adagrad", "adam", or "muon": Adam, but Muon for the matrices of hidden layers
    learning_rate: float = 0.2  # learning rate after the warm-up and before the decay
    initial_accumulator: float = 1.0  # Adagrad's sums of squared gradients at the start
    beta_1: float = 0.9  # decay of Adam's mean gradients per step, also for what Muon leaves to Adam
    beta_2: float = 0.999  # decay of Adam's mean squared gradients per step, likewise
    muon_scale: float = 0.2  # root mean square of Muon's moves, in units of the rate; Adam's have 0.2 to 0.4
    muon_weight_decay: float = 0.1  # what Muon's matrices lose in a step, in units of the rate and their values
    clip_norm: float = 10.0  # largest norm of all gradients together; larger gradients are scaled down
    num_sampled: int = 8192  # negatives per step and direction; 0, or over 3/4 of the vocabulary: the full softmax
    reset_rate: float = 0.0  # of the windows that start with a sentence, the share that starts from the zero state
    dropout_rate: float = 0.1  # share of every LSTM layer's input and of the softmax's that is set to 0
    # number format of all matrix products but the full softmax's: "float32", "bfloat16", or "auto": the faster one,
    # which is measured once
    precision: str = "float32"
    initial_softmax: str = "normal"  # "normal", as in the released model; or "log_uniform": small, biases by word rank
    seed: int = 0  # random seed of the initial weights, the order of the sentences, dropout and the negatives
    checkpoint_steps: int = 1000  # steps between checkpoints
    checkpoint_minutes: float = 0.0  # minutes between checkpoints, instead of checkpoint_steps; 0: not by time
    keep_checkpoints: int = 3  # newest checkpoints that are kept
    eval_steps: int | None = None  # steps between evaluations; null: as checkpoint_steps; 0: only at the end
    eval_tokens: int = 100_000  # first tokens of the held-out text that an evaluation takes; 0, and at the end: all
    log_steps: int = 20  # steps between points in TensorBoard
    # steps between diagnostics: histograms, update sizes, sampled against full softmax; 0: never
    look_steps: int = 1000
    warmup_steps: int = 0  # steps over which the rate rises linearly to learning_rate
    # of the rate after the warm-up: "none", "linear" or "cosine" (0 at the last step), or "inverse_sqrt" of the step
    decay: str = "none"
    patience: int = 0  # stop after this many evaluations without a better held-out perplexity; 0: never
    accumulation_steps: int = 1  # groups of batch_size streams per replica, computed one after the other for one update

    def __post_init__(self) -> None:
        counts = ("batch_size", "unroll_steps", "epochs", "checkpoint_steps", "keep_checkpoints", "log_steps")
        for name in (*counts, "accumulation_steps"):
            _require(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("eval_tokens", "look_steps", "warmup_steps", "patience"):
            _require(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")
        _require("eval_steps", self.eval_steps, (self.eval_steps or 0) >= 0, "at least 0, or null")
        without = self.eval_steps != 0 or self.patience == 0
        _require("eval_steps", self.eval_steps, without, "above 0, or null, with train.patience")
        _require("checkpoint_minutes", self.checkpoint_minutes, self.checkpoint_minutes >= 0, "at least 0")
        for name in ("beta_1", "beta_2"):
            _require(name, getattr(self, name), 0 <= getattr(self, name) < 1, "0 or more, below 1")
        expected = f"one of {', '.join(INITIAL_SOFTMAX)}"
        _require("initial_softmax", self.initial_softmax, self.initial_softmax in INITIAL_SOFTMAX, expected)
        _require("optimizer", self.optimizer, self.optimizer in OPTIMIZERS, f"one of {', '.join(OPTIMIZERS)}")
        _require("decay", self.decay, self.decay in DECAYS, f"one of {', '.join(DECAYS)}")
        for name in ("learning_rate", "initial_accumulator", "clip_norm", "muon_scale"):
            _require(name, getattr(self, name), getattr(self, name) > 0, "above 0")
        _require("num_sampled", self.num_sampled, self.num_sampled >= 0, "at least 0")
        _require("muon_weight_decay", self.muon_weight_decay, self.muon_weight_decay >= 0, "at least 0")
        for name in ("dropout_rate", "reset_rate"):
            _require(name, getattr(self, name), 0 <= getattr(self, name) < 1, "0 or more, below 1")
        _require("seed", self.seed, 0 <= self.seed < 2**31, "0 to 2^31 - 1")
        expected = f"one of {', '.join(PRECISIONS)}"
        _require("precision", self.precision, self.precision in PRECISIONS, expected)


@dataclasses.dataclass(frozen=True)
class Config:
    """A model and how it is trained; stored as `config.json` in a workdir and in a SavedModel."""

    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()


# With this `tiny` learned most from one and from ten million words; benchmarks/README.md lists what was tried.
_LITTLE_TEXT = TrainConfig(
    batch_size=16,
    num_sampled=2048,
    optimizer="muon",
    learning_rate=0.003,
    warmup_steps=100,
    decay="linear",
    initial_softmax="log_uniform",
    reset_rate=0.5,
)
_FIVE_CONVOLUTIONS = CharCNNConfig().filters[:5]

PRESETS: dict[str, Config] = {
    # Three million parameters: learns a small text within minutes on two cores.
    "tiny": Config(
        ModelConfig(CharCNNConfig(filters=_FIVE_CONVOLUTIONS, num_highway=1), LSTMConfig(512, 128)),
        dataclasses.replace(_LITTLE_TEXT, checkpoint_steps=400, look_steps=400),
    ),
    # The three sizes below are those published for ELMo.
    "small": Config(
        ModelConfig(CharCNNConfig(num_highway=1), LSTMConfig(1024, 128)),
        _LITTLE_TEXT,
    ),
    "medium": Config(
        ModelConfig(CharCNNConfig(num_highway=1), LSTMConfig(2048, 256)),
        dataclasses.replace(_LITTLE_TEXT, batch_size=32, num_sampled=4096),
    ),
    "original": Config(),
}


def preset(name: str) -> Config:
    """Returns the preset called `name`; raises `InputError`, listing all presets, if there is none."""
    if name not in PRESETS:
        raise InputError("name", f"one of {', '.join(PRESETS)}", repr(name) + suggestion(name, PRESETS))
    return PRESETS[name]


def with_paper_recipe(config: Config) -> Config:
    """Returns `config` with the released model's optimizer, schedule, clipping, dropout and initial values.

    What depends on the model's size or the data stays: batch size, negatives, epochs and `reset_rate`.
    """
    names = ("optimizer", "learning_rate", "initial_accumulator", "clip_norm", "initial_softmax", "dropout_rate")
    released = {name: getattr(TrainConfig(), name) for name in (*names, "warmup_steps", "decay")}
    return dataclasses.replace(config, train=dataclasses.replace(config.train, **released))


def keys(config_class: type = Config, prefix: str = "") -> dict[str, typing.Any]:
    """Returns every settable key, dotted, with its type: `{"train.learning_rate": float, ...}`."""
    found = {}
    for field in dataclasses.fields(config_class):
        if dataclasses.is_dataclass(field.type):
            found.update(keys(typing.cast(type, field.type), f"{prefix}{field.name}."))
        else:
            found[prefix + field.name] = field.type
    return found


def override(config: _Config, assignments: typing.Iterable[str]) -> _Config:
    """Returns `config`, a `Config` or a task's recipe, with `key=value` strings applied.

    A value is JSON, or a bare word for a string.

    Raises:
        InputError: for an unknown key (similar ones are suggested, or all are listed) or a value of the wrong type or
            range.
    """
    values = to_dict(config)
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator:
            raise InputError("assignments", "key=value", repr(assignment))
        known = keys(type(config))
        if key not in known:
            similar = suggestion(key, known)
            expected = "the key of a setting" if similar else f"one of the keys {', '.join(sorted(known))}"
            raise InputError("assignments", expected, repr(key) + similar)
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        *path, name = key.split(".")
        section = values
        for part in path:
            section = section[part]
        section[name] = value
    return from_dict(values, type(config))


def check_same_model(expected: Config, config: Config) -> None:
    """Raises `InputError`, naming the keys that differ, unless `config` has the model of `expected`."""

    def value(one: Config, key: str) -> typing.Any:
        return functools.reduce(getattr, key.split("."), one)

    different = [key for key in keys(ModelConfig, "model.") if value(expected, key) != value(config, key)]
    if different:
        wanted, given = (", ".join(f"{key}={value(one, key)}" for key in different) for one in (expected, config))
        raise InputError("config", f"the same model, {wanted}", given)


def to_dict(config: typing.Any) -> dict:
    """Returns nested plain dictionaries, ready for JSON and `from_dict`."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def from_dict(values: dict[str, typing.Any], config_class: type = Config, prefix: str = "") -> typing.Any:
    """Builds a config from nested dictionaries; a missing key has its default.

    Raises:
        InputError: naming the key, if it is unknown or its value has the wrong type or range.
    """
    if not isinstance(values, dict):
        raise InputError(prefix.rstrip(".") or "configuration", "an object", repr(values))
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    arguments = {}
    for name, value in values.items():
        if name not in fields:
            expected = ", ".join(prefix + known for known in fields)
            raise InputError("configuration", f"one of the keys {expected}", repr(prefix + name))
        if name == "eval_tokens" and value is None:
            continue  # earlier versions stored null, which means the default now
        kind = fields[name].type
        if dataclasses.is_dataclass(kind):
            arguments[name] = from_dict(value, typing.cast(type, kind), f"{prefix}{name}.")
        else:
            arguments[name] = _converted(prefix + name, value, kind)
    try:
        return config_class(**arguments)
    except InputError as error:
        raise InputError(prefix + error.parameter, error.expected, error.found) from None


def check_complete(values: dict[str, typing.Any]) -> None:
    """Raises `InputError`, naming the key, if the dictionary of a trained `Config` lacks a key of the model.

    The default of such a key would be another model. New keys of the recipe may be missing.
    """
    for key in keys(ModelConfig, "model."):
        section: typing.Any = values
        for name in key.split("."):
            if not isinstance(section, dict) or name not in section:
                raise InputError(key, "there", "no such key")
            section = section[name]


def _converted(key: str, value: typing.Any, kind: typing.Any) -> typing.Any:
    """Returns `value` as the field's type, or raises; JSON knows no tuples and writes 3.0 as 3."""
    allowed = typing.get_args(kind) if typing.get_origin(kind) is not tuple else (tuple,)
    allowed = allowed or (kind,)
    if float in allowed and isinstance(value, int) and not isinstance(value, bool):
        # Above the largest float, float() would raise.
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if tuple in allowed and isinstance(value, list):
        value = tuple(value)
    wrong = type(value) not in allowed or (isinstance(value, float) and not math.isfinite(value))
    if wrong:
        raise InputError(key, " or ".join(_KINDS[one] for one in allowed), repr(value))
    return value
