"""The files that travel with a SavedModel: its configuration, and where it comes from."""

import json
import pathlib
from typing import Any

import tensorflow as tf

from elmo_tf import __version__
from elmo_tf import config as config_lib


def write_assets(
    folder: pathlib.Path, config: config_lib.Config, provenance: dict[str, Any]
) -> list[tf.saved_model.Asset]:
    """Writes the assets to `folder`, from which TensorFlow copies them when it saves, and returns them."""
    contents = {"config.json": config_lib.to_dict(config), "provenance.json": {"elmo_tf": __version__, **provenance}}
    for name, values in contents.items():
        (folder / name).write_text(json.dumps(values, indent=2) + "\n", "utf-8")
    return [tf.saved_model.Asset(str(folder / name)) for name in contents]
