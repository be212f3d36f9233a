"""The assets of a SavedModel: its configuration, and where its weights and vocabulary come from."""

import json
import pathlib
from typing import Any

from elmo_tf import __version__
from elmo_tf import config as config_lib
from elmo_tf.files import json_file
from elmo_tf.files.json_file import Object, OneOf
from elmo_tf.savedmodel import contract

_CONFIG = Object({"model": Object({"char_cnn": Object({}), "lstm": Object({})})})
_PROVENANCE = Object({"tokenizer": OneOf(contract.TOKENIZERS)})


def write(folder: pathlib.Path, config: config_lib.Config, provenance: dict[str, Any]) -> list[pathlib.Path]:
    """Writes the assets to `folder`, from which TensorFlow copies them when it saves; returns their paths."""
    contents = {
        contract.CONFIG_FILE: config_lib.to_dict(config),
        contract.PROVENANCE_FILE: {"elmo_tf": __version__, **provenance},
    }
    paths = []
    for name, values in contents.items():
        paths.append(folder / pathlib.PurePosixPath(name).name)
        paths[-1].write_text(json.dumps(values, indent=2) + "\n", "utf-8")
    return paths


def read_config(savedmodel: pathlib.Path) -> config_lib.ModelConfig:
    """Returns the configuration of the network of the SavedModel in this folder.

    How it was trained is there for people to read: a later version may have other settings for that.

    Raises:
        InputError: if the file is missing, is not JSON or does not hold a configuration with a model.
    """
    file = savedmodel / contract.CONFIG_FILE
    values = json_file.read(file, _CONFIG, parameter="savedmodel")
    return config_lib.from_dict(values["model"], config_lib.ModelConfig, "model.", str(file))


def read_provenance(savedmodel: pathlib.Path) -> dict[str, Any]:
    """Returns the provenance of the SavedModel in this folder; it has one of `contract.TOKENIZERS` as `tokenizer`.

    Raises:
        InputError: if the file is missing, is not JSON or names no such tokenizer.
    """
    return json_file.read(savedmodel / contract.PROVENANCE_FILE, _PROVENANCE, parameter="savedmodel")
