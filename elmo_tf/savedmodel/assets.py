"""The assets of a SavedModel: its configuration, and where its weights and vocabulary come from."""

import json
import pathlib
from typing import Any

from elmo_tf import __version__
from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import contract


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


def read_config(savedmodel: pathlib.Path) -> config_lib.Config:
    """Returns the configuration of the SavedModel in this folder.

    Raises:
        InputError: if the file is missing, is not JSON or does not hold a configuration with a model.
    """
    values = _read(savedmodel, contract.CONFIG_FILE)
    model = values.get("model")
    for part in ("char_cnn", "lstm"):
        if not isinstance(model, dict) or not isinstance(model.get(part), dict):
            expected = f"model.{part} in {contract.CONFIG_FILE}"
            raise InputError("savedmodel", expected, f"{json.dumps(values)[:99]}: {savedmodel}")
    try:
        return config_lib.from_dict(values)
    except InputError as error:
        expected = f"a configuration in {contract.CONFIG_FILE}"
        raise InputError("savedmodel", expected, f"{error}: {savedmodel}") from None


def read_provenance(savedmodel: pathlib.Path) -> dict[str, Any]:
    """Returns the provenance of the SavedModel in this folder; it has one of `contract.TOKENIZERS` as `tokenizer`.

    Raises:
        InputError: if the file is missing, is not JSON or names no such tokenizer.
    """
    values = _read(savedmodel, contract.PROVENANCE_FILE)
    if values.get("tokenizer") not in contract.TOKENIZERS:
        expected = f"tokenizer to be one of {', '.join(contract.TOKENIZERS)} in {contract.PROVENANCE_FILE}"
        raise InputError("savedmodel", expected, f"{values.get('tokenizer')!r}: {savedmodel}")
    return values


def _read(savedmodel: pathlib.Path, name: str) -> dict[str, Any]:
    try:
        values = json.loads((savedmodel / name).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("savedmodel", f"a JSON object in {name}", f"{error}: {savedmodel}") from None
    if not isinstance(values, dict):
        raise InputError("savedmodel", f"a JSON object in {name}", f"{json.dumps(values)[:99]}: {savedmodel}")
    return values
