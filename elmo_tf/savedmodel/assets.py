"""An exported model's folder: its newest version, and the assets: configuration and provenance."""

import os
import pathlib
from collections.abc import Iterable
from typing import Any

import msgspec

from elmo_tf import __version__
from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.savedmodel import contract


class _Config(msgspec.Struct, frozen=True):
    """The part of a configuration that is read. Training settings are for people: a later version may have others."""

    model: dict[str, Any]


class _Provenance(msgspec.Struct, frozen=True):
    """The part of the provenance that is read."""

    tokenizer: config_lib.Tokenizer


def write(folder: pathlib.Path, config: config_lib.Config, provenance: dict[str, Any]) -> list[pathlib.Path]:
    """Writes the assets to `folder`, from which TensorFlow copies them when it saves; returns their paths."""
    contents = {
        contract.CONFIG_FILE: config_lib.to_dict(config),
        contract.PROVENANCE_FILE: {"elmo_tf": __version__, **provenance},
    }
    paths = []
    for name, values in contents.items():
        paths.append(folder / pathlib.PurePosixPath(name).name)
        paths[-1].write_text(json_file.dumps(values, indent=2) + "\n", "utf-8")
    return paths


def read_config(savedmodel: pathlib.Path) -> config_lib.ModelConfig:
    """Returns the configuration of a SavedModel's network; `InputError` if the file is missing or damaged."""
    file = savedmodel / contract.CONFIG_FILE
    if not file.exists() and (savedmodel / contract.SYSTEM_FILE).exists():
        raise InputError(str(savedmodel), "an export of `elmo-tf task`; use tf.saved_model.load and its signatures")
    model = json_file.read(file, _Config).model
    return config_lib.from_dict(model, config_lib.ModelConfig, "model.", str(file))


def read_tokenizer(savedmodel: pathlib.Path) -> str:
    """Returns how a SavedModel splits sentences; `InputError` if the file is missing or damaged."""
    return json_file.read(savedmodel / contract.PROVENANCE_FILE, _Provenance).tokenizer


def newest_of(names: Iterable[str]) -> str | None:
    """Returns the highest version among names of files and folders; None if none is a number."""
    return max((name for name in names if name.isdecimal()), key=int, default=None)


def newest(savedmodel: str | os.PathLike) -> pathlib.Path | None:
    """Returns `savedmodel` if it is a version's folder, or else the newest version in it; None if there is none."""
    folder = pathlib.Path(savedmodel)
    if not (folder / contract.GRAPH_FILE).is_file():
        folder /= (newest_of(os.listdir(folder)) if folder.is_dir() else None) or ""
    return folder if (folder / contract.GRAPH_FILE).is_file() else None
