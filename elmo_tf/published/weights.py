"""Weights of a `BiLM` from and to the files published for ELMo, and from bilm-tf's checkpoints."""

import hashlib
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.files.staging import new_folder
from elmo_tf.model.fast import BiLM
from elmo_tf.model.variables import relative_names
from elmo_tf.published import arrays, card
from elmo_tf.published.models import OPTIONS_FILE
from elmo_tf.published.options import read_options, write_options
from elmo_tf.text.vocabulary import Softmax, Vocabulary


def names(bilm: BiLM) -> list[tuple[keras.Variable, arrays.Names]]:
    """Returns the network's variables, in the order of `bilm.trainable_variables`, with their published names."""
    return [(v, arrays.published_names(name, tuple(v.shape))) for name, v in relative_names(bilm).items()]


def assign(
    source: arrays.StoredArrays, shapes: arrays.Shapes, variables: Mapping[str, tf.Variable | keras.Variable]
) -> None:
    """Reads the arrays of these shapes into the variables of the same names; raises as `arrays.read_all`."""
    for name, values in arrays.read_all(source, shapes):
        variables[name].assign(values.reshape(variables[name].shape))


def load(options: str | os.PathLike, weights: str | os.PathLike) -> tuple[config_lib.Config, BiLM]:
    """Returns the configuration and the network, without a softmax, of a published pair of files.

    Raises:
        InputError: if a file is missing or damaged, or the two do not match (`arrays.read_weights`).
    """
    config = read_options(options)
    values = dict(arrays.read_weights(weights, config.model))  # first, because a network of wrong sizes may be huge
    return config, BiLM.from_weights(config.model, values)


def dump(
    bilm: BiLM,
    output: str | os.PathLike,
    vocabulary: Vocabulary | None = None,
    tokenizer: str = "whitespace",
    facts: card.Facts | None = None,
) -> pathlib.Path:
    """Writes `options.json` and `weights.hdf5`, for bilm-tf and AllenNLP, to the new folder `output`, all or nothing.

    With a `vocabulary`, the network's softmax is written to `softmax.hdf5`, and its words to `vocab.txt`; other
    programs ignore these files, and the `tokenizer` in `options.json`. The card, with `facts`, is beside them.
    """
    values = ((name, keras.ops.convert_to_numpy(variable)) for name, variable in relative_names(bilm).items())
    softmax = None
    if vocabulary is not None:
        softmax = Softmax(bilm.softmax.kernel.numpy(), bilm.softmax.bias.numpy(), vocabulary)
    with new_folder(output) as folder:
        write_options(bilm.config, folder / OPTIONS_FILE, tokenizer)
        arrays.write(folder, values, softmax)
        card.write(folder, os.path.basename(os.path.abspath(output)), bilm.config, tokenizer, vocabulary, facts or {})
    return pathlib.Path(output)


def provenance(options: str | os.PathLike, weights: str | os.PathLike) -> dict[str, Any]:
    """Returns the provenance of a published pair of files for an export: names and checksums."""
    described = {}
    for kind, path in (("options", options), ("weights", weights)):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        described[kind] = {"name": pathlib.Path(path).name, "sha256": digest.hexdigest()}
    return described
