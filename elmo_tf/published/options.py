"""`options.json` of bilm-tf and AllenNLP <-> our configuration, by one table of keys."""

import functools
import json
import os
import pathlib
from typing import Any, NamedTuple

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError

_REQUIRED = object()  # a key without a default in bilm-tf
_RELEASED = object()  # missing in files for inference: as the released model was trained, our own default


class _Option(NamedTuple):
    """One key of `options.json`."""

    key: str  # dotted
    setting: str | None  # dotted key of `Config`; None: the network does not depend on it
    default: Any  # when the key is missing or null
    allowed: tuple | None = None  # values the network here can do; None: whatever the configuration takes


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
    # 261 while bilm-tf trains, 262 once its users have edited the file; the weights are the same.
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
    _Option("sample_softmax", None, True, (True, False)),  # False: 0 negatives
    _Option("n_tokens_vocab", None, None),  # checked against the softmax
    _Option("n_train_tokens", None, None),  # our loop counts the records' tokens
)
_INFERENCE_ONLY = {"char_cnn.n_characters": 262}  # what `write_options` adds to the network's settings


def read_options(
    path: str | os.PathLike, vocab_size: int | None = None, argument: str = "--options"
) -> config_lib.Config:
    """Reads an `options.json`, of the kind for training or for inference.

    Args:
        path: the file.
        vocab_size: words of the softmax that goes with it; None: there is none.
        argument: what errors call the file.

    Returns:
        the network, and the recipe as far as the file holds one; the rest of it is the released model's.

    Raises:
        InputError: if the file is not there or not JSON, a key is missing, unknown or of a value that cannot be had.
    """
    try:
        values = json.loads(pathlib.Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{argument}: expected an options.json, found {error.strerror}: {path}") from None
    except ValueError as error:  # not UTF-8 or not JSON
        raise InputError(f"{argument}: expected JSON, found {error}: {path}") from None
    return parse_options(values, vocab_size, argument)


def parse_options(values: Any, vocab_size: int | None = None, argument: str = "--options") -> config_lib.Config:
    """Returns the configuration of an `options.json`'s contents; see `read_options`."""
    found = _flattened(values, argument)
    settings: dict = {}
    for option in _OPTIONS:
        value = _value(option, found, argument)
        if option.setting is not None and value is not _RELEASED:
            _put(settings, option.setting, value)
    if _value(_option("sample_softmax"), found, argument) is False:
        _put(settings, "train.num_sampled", 0)
    words = found.get("n_tokens_vocab")
    if vocab_size is not None and words not in (None, vocab_size):
        raise InputError(f"{argument}: expected n_tokens_vocab to be {vocab_size}, the softmax's rows, found {words!r}")
    try:
        return config_lib.from_dict(settings)
    except InputError as error:
        raise InputError(f"{argument}: {_in_their_words(str(error))}") from None


def write_options(model: config_lib.ModelConfig, path: str | os.PathLike) -> None:
    """Writes the `options.json` of a network, ready for inference with bilm-tf or AllenNLP."""
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


def _flattened(values: Any, argument: str, prefix: str = "") -> dict[str, Any]:
    """Returns the known dotted keys and their values; raises at the first unknown one."""
    if not isinstance(values, dict):
        what = f"{prefix[:-1]} to be " if prefix else ""
        raise InputError(f"{argument}: expected {what}a JSON object, found {values!r}")
    if not prefix and "char_cnn" not in values:
        raise InputError(f"{argument}: expected char_cnn, found none; networks that read word ids are not supported")
    known, found = {option.key for option in _OPTIONS}, {}
    for name, value in values.items():
        key = prefix + name
        if key in known:
            found[key] = value
        elif any(other.startswith(f"{key}.") for other in known):
            found.update(_flattened(value, argument, f"{key}."))
        else:
            expected = ", ".join(sorted(known))
            raise InputError(f"{argument}: expected the keys {expected}, found {key!r}")
    return found


def _value(option: _Option, found: dict[str, Any], argument: str) -> Any:
    value = found.get(option.key)
    if value is None:
        if option.default is _REQUIRED or (option.default is _RELEASED and option.key in found):
            state = "null" if option.key in found else "no such key"
            raise InputError(f"{argument}: expected a value of {option.key}, found {state}")
        return option.default
    # `1 == True` in Python, but not in JSON.
    if option.allowed is not None and not any(value == one and type(value) is type(one) for one in option.allowed):
        expected = " or ".join(json.dumps(one) for one in option.allowed)
        raise InputError(f"{argument}: expected {option.key} to be {expected}, found {json.dumps(value)}")
    return value


def _put(nested: dict, key: str, value: Any) -> None:
    *path, name = key.split(".")
    for part in path:
        nested = nested.setdefault(part, {})
    nested[name] = value


def _in_their_words(message: str) -> str:
    """Returns a message of the configuration's, about the keys of `options.json` instead."""
    for option in _OPTIONS:
        if option.setting is not None:
            message = message.replace(option.setting, option.key)
    return message.removeprefix("configuration: ").replace("at most units,", "at most lstm.dim,")
