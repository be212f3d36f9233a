"""The settings of a model and its training: frozen dataclasses, presets as data, JSON, `key=value` overrides."""

import dataclasses
import functools
import itertools
import json
import math
import operator
import sys
import typing
from typing import Annotated, Any, Literal

from msgspec import Meta

from elmo_tf.errors import InputError, convert, suggestion

_Config = typing.TypeVar("_Config")
_NO_KEY = "configuration"  # the subject of an error that is not about a single key
_CHARACTERS = 261  # trained rows of the character table
_MAX_LAYERS = 100

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
AboveZero = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Rate = Annotated[float, Meta(ge=0, lt=1)]
# How a sentence is split: on runs of ASCII white space; English text by the Penn Treebank's rules; text of any language
# by Unicode's properties, which needs tensorflow-text; into characters.
Tokenizer = Literal["whitespace", "penn", "unicode", "characters"]
_Filters = Annotated[tuple[tuple[Positive, Positive], ...], Meta(min_length=1)]


def _types(config_class: type) -> dict[str, Any]:
    return {field.name: field.type for field in dataclasses.fields(config_class)}


class Checked:
    """Base of dataclasses whose fields are checked against their types, `msgspec.Meta` included, on construction."""

    def __post_init__(self) -> None:
        for name, kind in _types(type(self)).items():
            value = getattr(self, name)
            value = value.item() if hasattr(value, "item") else value  # a NumPy number
            if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:  # or NaN
                raise InputError(name, "a finite number", value)
            # JSON has no tuples and may write 3.0 as 3.
            object.__setattr__(self, name, convert(value, kind, name))

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise InputError(name, expected, getattr(self, name))


@dataclasses.dataclass(frozen=True)
class CharCNNConfig(Checked):
    """The context-free token encoder (Peters et al. 2018, section 3.4; Kim et al. 2015)."""

    embedding_dim: Positive = 16  # width of a character's vector
    # (width in characters, number of filters) of each convolution
    filters: _Filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    num_highway: Annotated[int, Meta(ge=0, le=_MAX_LAYERS)] = 2  # highway layers after the max-pool
    activation: Literal["relu", "tanh"] = "relu"  # activation function after the max-pool: "relu" or "tanh"
    # ids per token, begin- and end-word marks included
    max_chars_per_token: Annotated[int, Meta(ge=3, le=257)] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        widest = max(width for width, _ in self.filters)
        self._require("filters", widest <= self.max_chars_per_token, "widths of at most max_chars_per_token")

    @property
    def num_filters(self) -> int:
        """Width of the max-pool's output."""
        return sum(count for _, count in self.filters)


@dataclasses.dataclass(frozen=True)
class LSTMConfig(Checked):
    """One direction's stack of projected LSTMs (section 3.4 of the paper; Sak et al. 2014)."""

    units: Positive = 4096  # cells per layer
    projection_dim: Positive = 512  # width of the token vector and of each layer's output; = units: no projection
    num_layers: Annotated[int, Meta(ge=1, le=_MAX_LAYERS)] = 2  # LSTM layers of each direction
    cell_clip: AboveZero | None = 3.0  # the cell state is clipped to +-this; null: no clipping
    proj_clip: AboveZero | None = 3.0  # the projected output is clipped to +-this; null: no clipping
    use_skip_connections: bool = True  # every layer but the first adds its input to its output

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("projection_dim", self.projection_dim <= self.units, f"at most units, {self.units}")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network, without its softmax."""

    char_cnn: CharCNNConfig = CharCNNConfig()  # the token encoder
    lstm: LSTMConfig = LSTMConfig()  # the language model of each direction

    def num_parameters(self, vocab_size: int | None = None) -> int:
        """Returns the network's number of parameters, with a softmax of `vocab_size` words or without a softmax."""
        softmax = (vocab_size or 0) * (self.lstm.projection_dim + 1)
        return sum(map(math.prod, self.weight_shapes().values())) + softmax

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each weight of the network without its softmax, by name."""
        cnn, units, width = self.char_cnn, self.lstm.units, self.lstm.projection_dim
        size = cnn.num_filters
        shapes: dict[str, tuple[int, ...]] = {"char_cnn/embedding": (_CHARACTERS, cnn.embedding_dim)}
        for n, (span, count) in enumerate(cnn.filters):
            shapes |= {f"char_cnn/kernel_{n}": (span, cnn.embedding_dim, count), f"char_cnn/bias_{n}": (count,)}
        for n in range(cnn.num_highway):
            for part in ("gate", "transform"):
                shapes[f"char_cnn/highway_{n}/{part}_kernel"] = (size, size)
                shapes[f"char_cnn/highway_{n}/{part}_bias"] = (size,)
        if size != width:
            shapes |= {"char_cnn/projection/kernel": (size, width), "char_cnn/projection/bias": (width,)}
        for direction, n in itertools.product(("forward", "backward"), range(self.lstm.num_layers)):
            layer = f"{direction}_{n}"
            shapes |= {f"{layer}/kernel": (2 * width, 4 * units), f"{layer}/bias": (4 * units,)}
            if width != units:
                shapes[f"{layer}/projection_kernel"] = (units, width)
        return shapes


@dataclasses.dataclass(frozen=True)
class TrainConfig(Checked):
    """The recipe; the defaults are those of the released model (bilm-tf, `bin/train_elmo.py`)."""

    batch_size: Positive = 128  # streams per replica
    unroll_steps: Positive = 20  # tokens per window; backpropagation stops at its start
    epochs: Positive | None = 10  # passes over the corpus; null: train.steps is the length
    steps: Count | None = None  # steps of the whole training, instead of train.epochs
    # "adagrad", "adam", or "muon": Adam, but Muon for the matrices of hidden layers
    optimizer: Literal["adagrad", "adam", "muon"] = "adagrad"
    learning_rate: AboveZero = 0.2  # learning rate after the warm-up and before the decay
    initial_accumulator: AboveZero = 1.0  # initial value of Adagrad's sums of squared gradients
    beta_1: Rate = 0.9  # decay rate of Adam's first moment, also for the weights that Muon leaves to Adam
    beta_2: Rate = 0.999  # decay rate of Adam's second moment, likewise
    # root mean square of Muon's updates, relative to the learning rate; Adam's is 0.2 to 0.4
    muon_scale: AboveZero = 0.2
    muon_weight_decay: NotNegative = 0.1  # weight decay of Muon's matrices per step, relative to the learning rate
    clip_norm: AboveZero = 10.0  # largest global norm of the gradients; larger ones are scaled down
    num_sampled: Count = 8192  # negatives per step and direction; 0, or over 3/4 of the vocabulary: the full softmax
    reset_rate: Rate = 0.0  # share of windows starting with a sentence that start from the zero state
    dropout_rate: Rate = 0.1  # share of every LSTM layer's input and of the softmax's that is set to 0
    # number format of all matrix products but the full softmax's: "float32", "bfloat16", or "auto": bfloat16 if the
    # hardware multiplies bfloat16 matrices, decided when the workdir is made, and kept in it
    precision: Literal["float32", "bfloat16", "auto"] = "float32"
    # "normal", as in the released model; or "log_uniform": small, biases by word rank
    initial_softmax: Literal["normal", "log_uniform"] = "normal"
    # random seed of the initial weights, the order of the sentences, dropout and the negatives
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    checkpoint_steps: Positive = 1000  # steps between checkpoints
    checkpoint_minutes: NotNegative = 0.0  # minutes between checkpoints, instead of checkpoint_steps; 0: not by time
    keep_checkpoints: Positive = 3  # newest checkpoints to keep
    eval_steps: Count | None = None  # steps between evaluations; null: as checkpoint_steps; 0: only at the end
    # tokens to evaluate on, from the start of the held-out text; 0: all; the evaluation at the end always uses all
    eval_tokens: Count = 100_000
    log_steps: Positive = 20  # steps between points in TensorBoard
    # steps between diagnostics: histograms, update sizes, sampled against full softmax; 0: never
    look_steps: Count = 1000
    warmup_steps: Count = 0  # steps over which the rate rises linearly to learning_rate
    # schedule of the rate after the warm-up: "none", "linear" or "cosine" (0 after the last step), or "inverse_sqrt"
    decay: Literal["none", "linear", "cosine", "inverse_sqrt"] = "none"
    patience: Count = 0  # stop after this many evaluations without a better held-out perplexity; 0: never

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = f"null beside epochs={self.epochs}" if self.epochs is not None else "a number, as epochs is null"
        self._require("steps", (self.steps is None) != (self.epochs is None), f"{expected}: one of them is the length")
        self._require("eval_steps", self.eval_steps != 0 or self.patience == 0, "above 0, or null, with train.patience")


@dataclasses.dataclass(frozen=True)
class Config:
    """A model and how it is trained; stored as `config.json` in a workdir and in a SavedModel."""

    model: ModelConfig = ModelConfig()  # the network
    train: TrainConfig = TrainConfig()  # the recipe


# The recipe with which `tiny` learned most from one and from ten million words; see benchmarks/README.md.
_SMALL_DATA = TrainConfig(
    batch_size=16,
    num_sampled=2048,
    optimizer="muon",
    learning_rate=0.003,
    warmup_steps=100,
    decay="linear",
    initial_softmax="log_uniform",
    reset_rate=0.5,
    precision="auto",
)
_FIVE_CONVOLUTIONS = CharCNNConfig().filters[:5]

PRESETS: dict[str, Config] = {
    # Three million parameters: learns a small text within minutes on two cores.
    "tiny": Config(
        ModelConfig(CharCNNConfig(filters=_FIVE_CONVOLUTIONS, num_highway=1), LSTMConfig(512, 128)),
        dataclasses.replace(_SMALL_DATA, checkpoint_steps=400, look_steps=400),
    ),
    # The three sizes below are those published for ELMo.
    "small": Config(
        ModelConfig(CharCNNConfig(num_highway=1), LSTMConfig(1024, 128)),
        _SMALL_DATA,
    ),
    "medium": Config(
        ModelConfig(CharCNNConfig(num_highway=1), LSTMConfig(2048, 256)),
        dataclasses.replace(_SMALL_DATA, batch_size=32, num_sampled=4096),
    ),
    "original": Config(),
}


def preset(name: str) -> Config:
    """Returns the preset called `name`; raises `InputError`, listing all presets, if there is none."""
    if name not in PRESETS:
        raise InputError(
            "preset", f"no preset {name!r}{suggestion(name, PRESETS)} (expected one of {', '.join(PRESETS)})"
        )
    return PRESETS[name]


def with_paper_recipe(config: Config) -> Config:
    """Returns `config` with the released model's optimizer, schedule, clipping, dropout, initial values and precision.

    Settings that depend on the model's size or the data do not change: batch size, negatives, length, `reset_rate`.
    """
    names = ("optimizer", "learning_rate", "initial_accumulator", "clip_norm", "initial_softmax", "dropout_rate")
    released = {name: getattr(TrainConfig(), name) for name in (*names, "warmup_steps", "decay", "precision")}
    return dataclasses.replace(config, train=dataclasses.replace(config.train, **released))


def with_length(config: Config, *, steps: int | None = None, epochs: int | None = None) -> Config:
    """Returns `config` with its length replaced by this many steps or epochs."""
    return dataclasses.replace(config, train=dataclasses.replace(config.train, steps=steps, epochs=epochs))


def keys(config_class: type = Config, prefix: str = "") -> dict[str, Any]:
    """Returns every settable key, dotted, with its type: `{"train.epochs": int, ...}`."""
    types: dict[str, Any] = {}
    for name, kind in _types(config_class).items():
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            types |= keys(kind, f"{prefix}{name}.")
        else:
            types[prefix + name] = kind
    return types


def override(config: _Config, assignments: typing.Iterable[str]) -> _Config:
    """Returns `config`, a `Config` or a task's recipe, with `key=value` strings applied.

    A value is JSON, or a bare word for a string.

    Raises:
        InputError: for an unknown key (similar ones are suggested, or all are listed) or a value of the wrong type or
            range.
    """
    values, settings = to_dict(config), keys(type(config))
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator:
            raise InputError("assignments", f"{assignment!r} is not of the form key=value")
        if key not in settings:
            raise InputError("assignments", _unknown(key, settings))
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        *path, name = key.split(".")
        functools.reduce(dict.__getitem__, path, values)[name] = value
    return from_dict(values, type(config))


def check_same_model(expected: Config, config: Config) -> None:
    """Raises `InputError`, naming the keys that differ, unless `config` has the model of `expected`."""
    getters = {key: operator.attrgetter(key) for key in keys(ModelConfig, "model.")}
    values = {key: (value_of(expected), value_of(config)) for key, value_of in getters.items()}
    different = {key: pair for key, pair in values.items() if pair[0] != pair[1]}
    if different:
        stored, requested = (", ".join(f"{key}={pair[side]}" for key, pair in different.items()) for side in (0, 1))
        raise InputError("config", f"the model has {stored}, which cannot be changed to {requested}")


def hparams(config: Any) -> dict[str, bool | int | float | str]:
    """Returns the settings by their dotted keys, as TensorBoard's HParams take them: without those that are None."""
    values = {name: operator.attrgetter(name)(config) for name in keys(type(config))}
    plain = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in values.items()}
    return {name: value for name, value in plain.items() if values[name] is not None}


def to_dict(config: Any) -> dict:
    """Returns nested plain dictionaries, ready for JSON and `from_dict`."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def from_dict(values: dict[str, Any], config_class: type = Config, prefix: str = "", source: str | None = None) -> Any:
    """Builds a config from nested dictionaries; a missing key has its default.

    Args:
        values: the dictionaries.
        config_class: the class of the config.
        prefix: of every key in an error.
        source: the file that holds `values`. An error then names the file and the key.

    Raises:
        InputError: naming the key, if it is unknown or its value has the wrong type or range.
    """
    try:
        return _build(values, config_class, prefix)
    except InputError as error:
        if source is None:
            raise
        subject = source if error.subject == _NO_KEY else f"{source}: {error.subject}"
        raise error.about(subject) from None


def check_complete(values: dict[str, Any], source: str) -> None:
    """Raises `InputError` if the dictionary of a trained `Config`, in the file `source`, lacks a key of the model.

    The default of such a key could give another model. New keys of the recipe may be missing.
    """
    for key in keys(ModelConfig):
        section, name = key.split(".")
        if name not in values.get("model", {}).get(section, {}):
            raise InputError(source, f"no key model.{key}")


def _build(values: Any, config_class: Any, prefix: str) -> Any:
    if not isinstance(values, dict):
        raise InputError(prefix.rstrip(".") or _NO_KEY, "an object", repr(values))
    types, arguments = _types(config_class), {}
    for name, value in values.items():
        if name not in types:
            raise InputError(_NO_KEY, _unknown(prefix + name, keys(config_class, prefix)))
        is_section = dataclasses.is_dataclass(types[name])
        arguments[name] = _build(value, types[name], f"{prefix}{name}.") if is_section else value
    try:
        return config_class(**arguments)
    except InputError as error:
        raise error.about(prefix + error.subject) from None


def _unknown(key: str, known: typing.Iterable[str]) -> str:
    alternatives = suggestion(key, known) or f" (expected one of {', '.join(sorted(known))})"
    return f"no setting {key!r}{alternatives}"
