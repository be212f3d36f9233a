"""`options.json` of bilm-tf and AllenNLP <-> our configuration, in a table of keys."""

import operator
import os
import pathlib
import typing
from typing import Any, NamedTuple

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, suggestion
from elmo_tf.files import json_file

# Defaults of a key: none, if it is required; or the released model's value, which is also our default.
_REQUIRED, _RELEASED = object(), object()


class _Option(NamedTuple):
    """One key of `options.json`."""

    key: str  # dotted
    setting: str | None  # dotted key of `Config`; None: the network does not depend on it
    default: Any  # when the key is missing or null
    allowed: tuple | None = None  # values supported here; None: all that the configuration accepts


_OPTIONS = (
    _Option("lstm.dim", "model.lstm.units", _REQUIRED),
    _Option("lstm.projection_dim", "model.lstm.projection_dim", _REQUIRED),
    _Option("lstm.n_layers", "model.lstm.num_layers", 1),
    _Option("lstm.cell_clip", "model.lstm.cell_clip", None),
    _Option("lstm.proj_clip", "model.lstm.proj_clip", None),
    _Option("lstm.use_skip_connections", "model.lstm.use_skip_connections", False),
    _Option("char_cnn.embedding.dim", "model.char_cnn.embedding_dim", _REQUIRED),
    _Option("char_cnn.filters", "model.char_cnn.filters", _REQUIRED),
    _Option("char_cnn.n_highway", "model.char_cnn.num_highway", 0),
    _Option("char_cnn.activation", "model.char_cnn.activation", _REQUIRED),
    _Option("char_cnn.max_characters_per_token", "model.char_cnn.max_chars_per_token", _REQUIRED),
    # bilm-tf trains with 261; its users then edit the file to 262. The weights are the same.
    _Option("char_cnn.n_characters", None, 262, (261, 262)),
    _Option("bidirectional", None, True, (True,)),
    _Option("share_embedding_softmax", None, False, (False,)),
    _Option("dropout", "train.dropout_rate", _RELEASED),
    _Option("all_clip_norm_val", "train.clip_norm", _RELEASED),
    _Option("batch_size", "train.batch_size", _RELEASED),
    _Option("unroll_steps", "train.unroll_steps", _RELEASED),
    _Option("n_negative_samples_batch", "train.num_sampled", _RELEASED),
    _Option("n_epochs", "train.epochs", _RELEASED),
    _Option("learning_rate", "train.learning_rate", _RELEASED),
    _Option("sample_softmax", None, True, (True, False)),  # False: no negatives
    _Option("n_tokens_vocab", None, None),  # compared with the softmax
    _Option("n_train_tokens", None, None),  # not needed: training counts the tokens of its records
    _Option("tokenizer", None, "whitespace", typing.get_args(config_lib.Tokenizer)),  # only written here
)


def read_options(options: str | os.PathLike, vocab_size: int | None = None) -> config_lib.Config:
    """Reads an `options.json`, of the kind for training or for inference.

    Args:
        options: the file.
        vocab_size: words of the softmax that goes with it; None: there is no softmax.

    Returns:
        the network, and the recipe as far as the file has it; the rest is the released model's.

    Raises:
        InputError: if the file is missing or not JSON, or a key is missing, unknown or has an unsupported value.
    """
    return parse_options(json_file.read(options, dict), vocab_size, str(options))


def parse_options(options: dict[str, Any], vocab_size: int | None = None, source: str = "options") -> config_lib.Config:
    """Like `read_options`, for the contents of the file; errors name their `source`."""
    keys = {option.setting: option.key for option in _OPTIONS}
    try:
        return config_lib.from_dict(_settings(options, vocab_size))
    except InputError as error:
        key = keys.get(error.subject, error.subject)
        problem = error.problem.replace("at most units", "at most lstm.dim")
        if error.found == "":
            raise InputError(source, f"{key}: {problem}") from None
        raise InputError(source, f"{key} to be {problem}" if key else problem, error.found) from None


def _settings(options: dict[str, Any], vocab_size: int | None) -> dict:
    """Returns the settings that `options` determine, as nested dictionaries."""
    values_by_key = _flattened(options)
    settings: dict = {}
    for option in _OPTIONS:
        value = _value(option, values_by_key)
        if option.setting is not None and value is not _RELEASED:
            _put(settings, option.setting, value)
    if values_by_key.get("sample_softmax") is False:
        _put(settings, "train.num_sampled", 0)
    words = values_by_key.get("n_tokens_vocab")
    if vocab_size is not None and words not in (None, vocab_size):
        raise InputError("n_tokens_vocab", f"{vocab_size}, the rows of the softmax", repr(words))
    return settings


def read_tokenizer(options: str | os.PathLike) -> str:
    """Returns how a model splits sentences, from an `options.json` that `read_options` accepts."""
    return json_file.read(options, dict).get("tokenizer") or "whitespace"


def write_options(model: config_lib.ModelConfig, path: str | os.PathLike, tokenizer: str = "whitespace") -> None:
    """Writes the `options.json` of a network for inference with bilm-tf or AllenNLP, which ignore the tokenizer."""
    options: dict = {}
    for option in _OPTIONS:
        if option.setting is not None and option.setting.startswith("model."):
            value = operator.attrgetter(option.setting.removeprefix("model."))(model)
            _put(options, option.key, value)
        elif option.key == "char_cnn.n_characters":
            _put(options, option.key, option.default)
    if tokenizer != "whitespace":
        options["tokenizer"] = tokenizer
    pathlib.Path(path).write_text(json_file.dumps(options) + "\n", "utf-8")


def _flattened(values: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the known dotted keys and their values; raises at the first unknown key."""
    if not isinstance(values, dict):
        raise InputError(prefix[:-1], "a JSON object", repr(values))
    if not prefix and "char_cnn" not in values:
        raise InputError("char_cnn", "missing; networks that read word ids are not supported")
    known, flat = {option.key for option in _OPTIONS}, {}
    for name, value in values.items():
        key = prefix + name
        if key in known:
            flat[key] = value
        elif any(other.startswith(f"{key}.") for other in known):
            flat.update(_flattened(value, f"{key}."))
        else:
            raise InputError(key, f"unknown key{suggestion(key, known)} (known keys: {', '.join(sorted(known))})")
    return flat


def _value(option: _Option, values_by_key: dict[str, Any]) -> Any:
    value = values_by_key.get(option.key)
    if value is None:
        if option.default is _REQUIRED or (option.default is _RELEASED and option.key in values_by_key):
            raise InputError(option.key, "null is not allowed" if option.key in values_by_key else "missing")
        return option.default
    # `1 == True` in Python, but not in JSON.
    if option.allowed is not None and not any(
        value == other and type(value) is type(other) for other in option.allowed
    ):
        expected = " or ".join(json_file.dumps(allowed) for allowed in option.allowed)
        raise InputError(option.key, expected, json_file.dumps(value))
    return value


def _put(nested: dict, key: str, value: Any) -> None:
    *path, name = key.split(".")
    for part in path:
        nested = nested.setdefault(part, {})
    nested[name] = value
