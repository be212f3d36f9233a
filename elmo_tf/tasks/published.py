"""Trained systems that come with this package: each has a name, its own weights, and the name of its biLM.

The biLM is not stored a second time: `english-ner` reads `english`.
"""

from typing import Any

import h5py
import keras
import msgspec
import numpy as np

from elmo_tf import config as config_lib
from elmo_tf import tasks
from elmo_tf.annotated.reading import Reading
from elmo_tf.files import json_file
from elmo_tf.published import fetching, models
from elmo_tf.tasks.system import System
from elmo_tf.tasks.token_vectors import TokenVectors, WordTable


class Options(msgspec.Struct, frozen=True):
    """The content of `options.json`. `weights.hdf5` has the known words, and the trained arrays by their numbers."""

    task: str
    elmo: str  # name of the biLM
    recipe: dict[str, Any]
    labels: list[str]


def read(name: str, reading: Reading) -> tuple[System, keras.Model]:
    """Returns a system and its network, given its name and how it reads files; `InputError` if a file is damaged."""
    files = fetching.files(models.find(name))
    options = json_file.read(files.options, Options)
    kind = tasks.system_class(options.task)
    recipe = config_lib.from_dict(options.recipe, type(next(iter(kind.recipes.values()))), source=str(files.options))
    system = kind(recipe, options.labels, reading)
    with h5py.File(files.weights) as file:
        words = WordTable(file["words"].asstr()[()].tolist(), np.zeros((0, 0), np.float32))
        network = system.network(TokenVectors(recipe, words, options.elmo))
        for number, variable in enumerate(network.trainable_variables):
            variable.assign(file[str(number)][()])
    return system, network
