"""`options.json` of bilm-tf and AllenNLP <-> our configuration, in one table of keys."""

import functools
import json
import os
import pathlib
from typing import Any, NamedTuple

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.files import json_file

# The default of a key that has none in bilm-tf.
_REQUIRED = object()
# The default of a key that files for inference lack: the released model's value, which is our own default.
_RELEASED = object()


class _Option(NamedTuple):
    """One key of `options.json`."""

    # Dotted.
    key: str
    # Dotted key of `Config`; None: the network does not depend on it.
    setting: str | None
    # When the key is missing or null.
    default: Any
    # Values that the network here supports; None: all that the configuration takes.
    allowed: tuple | None = None


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
    # False: 0 negatives.
    _Option("sample_softmax", None, True, (True, False)),
    # Compared with the softmax.
    _Option("n_tokens_vocab", None, None),
    # Not needed: our loop counts the records' tokens.
    _Option("n_train_tokens", None, None),
)
# What `write_options` adds to the network's settings.
_INFERENCE_ONLY = {"char_cnn.n_characters": 262}


def read_options(options: str | os.PathLike, vocab_size: int | None = None) -> config_lib.Config:
    """Reads an `options.json`, of the kind for training or for inference.

    Args:
        options: the file.
        vocab_size: words of the softmax that goes with it; None: there is none.

    Returns:
        the network, and the recipe as far as the file holds one; the rest of it is the released model's.

    Raises:
        InputError: if the file is missing or not JSON, or a key is missing, unknown or has an unsupported value.
    """
    values = json_file.read(options, json_file.Object({}), parameter="options")
    try:
        return parse_options(values, vocab_size)
    except InputError as error:
        raise InputError(error.parameter, error.expected, f"{error.found}: {options}") from None


def parse_options(options: Any, vocab_size: int | None = None) -> config_lib.Config:
    """Returns the configuration of an `options.json`'s contents; see `read_options`."""
    found = _flattened(options)
    settings: dict = {}
    for option in _OPTIONS:
        value = _value(option, found)
        if option.setting is not None and value is not _RELEASED:
            _put(settings, option.setting, value)
    if _value(_option("sample_softmax"), found) is False:
        _put(settings, "train.num_sampled", 0)
    words = found.get("n_tokens_vocab")
    if vocab_size is not None and words not in (None, vocab_size):
        raise InputError("options", f"n_tokens_vocab to be {vocab_size}, the rows of the softmax", repr(words))
    try:
        return config_lib.from_dict(settings)
    except InputError as error:
        raise _in_their_words(error) from None


def write_options(model: config_lib.ModelConfig, path: str | os.PathLike) -> None:
    """Writes the `options.json` of a network for inference with bilm-tf or AllenNLP."""
    settings = {"model": config_lib.to_dict(model)}
    options: dict = {}
    for option in _OPTIONS:
        if option.setting is not None and option.setting.startswith("model."):
            _put(options, option.key, functools.reduce(dict.get, option.setting.split("."), settings))
        elif option.key in _INFERENCE_ONLY:
            _put(options, option.key, _INFERENCE_ONLY[option.key])
    pathlib.Path(path).write_text(json.dumps(options) + "\n", "utf-8")


def _option(key: str) -> _Option:
    return next(option for option in _OPTIONS if option.key == key)


def _flattened(values: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the known dotted keys and their values; raises at the first unknown one."""
    if not isinstance(values, dict):
        what = f"{prefix[:-1]} to be " if prefix else ""
        raise InputError("options", f"{what}a JSON object", repr(values))
    if not prefix and "char_cnn" not in values:
        raise InputError("options", "char_cnn", "none; networks that read word ids are not supported")
    known, found = {option.key for option in _OPTIONS}, {}
    for name, value in values.items():
        key = prefix + name
        if key in known:
            found[key] = value
        elif any(other.startswith(f"{key}.") for other in known):
            found.update(_flattened(value, f"{key}."))
        else:
            raise InputError("options", f"the keys {', '.join(sorted(known))}", repr(key))
    return found


def _value(option: _Option, found: dict[str, Any]) -> Any:
    value = found.get(option.key)
    if value is None:
        if option.default is _REQUIRED or (option.default is _RELEASED and option.key in found):
            state = "null" if option.key in found else "no such key"
            raise InputError("options", f"a value of {option.key}", state)
        return option.default
    # `1 == True` in Python, but not in JSON.
    if option.allowed is not None and not any(value == one and type(value) is type(one) for one in option.allowed):
        expected = " or ".join(json.dumps(one) for one in option.allowed)
        raise InputError("options", f"{option.key} to be {expected}", json.dumps(value))
    return value


def _put(nested: dict, key: str, value: Any) -> None:
    *path, name = key.split(".")
    for part in path:
        nested = nested.setdefault(part, {})
    nested[name] = value


def _in_their_words(error: InputError) -> InputError:
    """Returns an error about the configuration as one about the keys of `options.json`."""
    message = str(error).removeprefix("configuration: ")
    for option in _OPTIONS:
        if option.setting is not None:
            message = message.replace(option.setting, option.key)
    message = message.replace("at most units,", "at most lstm.dim,").replace(": expected ", " to be ", 1)
    expected, _, found = message.removeprefix("expected ").partition(", found ")
    return InputError("options", expected, found)
