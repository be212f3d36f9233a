"""A BiLM as a SavedModel that any TensorFlow program loads: three signatures, every layer, the ELMo vector."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf import __version__, staging, verify_savedmodel
from elmo_tf import config as config_lib
from elmo_tf.bilm import BiLM
from elmo_tf.data import in_graph
from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import ScalarMix

_SIGNATURES = ("default", "tokens", "char_ids")
_SURE = 100.0  # one scalar parameter above the others by this: the softmax gives its layer all the weight
PROBES = ("A bank of the river .", "The bank lends money to the people who need it .", "", "naïve 日本語")


def export(
    bilm: BiLM,
    config: config_lib.Config,
    output: str | os.PathLike,
    scalar_parameters: list[float] | None = None,
    gamma: float = 1.0,
    provenance: dict[str, Any] | None = None,
) -> pathlib.Path:
    """Writes `bilm` to `output/<version>/`, the version one above those there, once a fresh process has verified it.

    Args:
        bilm: the network; its softmax is not exported.
        config: what `assets/config.json` will hold; `config.model` is the network's.
        output: the model's folder, as TensorFlow Serving expects it.
        scalar_parameters: one a layer, the token layer first, before the softmax that makes weights of them; None: all
            zero, the average.
        gamma: scale of the ELMo vector.
        provenance: JSON to keep in `assets/provenance.json`: where weights and vocabulary came from.

    Returns:
        the new version's folder.

    Raises:
        InputError: if `output` is no folder, or there are not as many parameters as layers.
        RuntimeError: if the written model does not do in another process what `bilm` does here; nothing is left then.
    """
    folder = pathlib.Path(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output: expected a folder for the model's versions, found a file: {folder}")
    if (folder / "saved_model.pb").exists():
        raise InputError(f"--output: expected the folder of a model's versions, found one version: {folder}")
    root = _root(bilm, _mix(bilm, scalar_parameters, gamma))
    there = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()] if folder.exists() else []
    version = folder / str(max(there, default=0) + 1)
    with staging.new_folder(version, "--output") as made, tempfile.TemporaryDirectory() as scratch:
        root.assets = _assets(pathlib.Path(scratch), config, provenance or {})
        signatures = {"serving_default": root.default, **{name: getattr(root, name) for name in _SIGNATURES}}
        tf.saved_model.save(root, str(made), signatures=signatures)
        _verify(made, pathlib.Path(scratch) / "expected.npz", root)
    return version


def parse_mix(text: str, num_layers: int) -> list[float]:
    """Returns the scalar parameters of a mix: `average`, `top`, or numbers between commas, the token layer's first.

    Raises:
        InputError: if it is none of these, or there is not one number for each of `num_layers` + 1 layers.
    """
    if text == "average":
        return [0.0] * (num_layers + 1)
    if text == "top":
        return [0.0] * num_layers + [_SURE]
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != num_layers + 1 or not all(map(_is_finite, numbers)):
        raise InputError(f"--mix: expected average, top or {num_layers + 1} numbers between commas, found {text!r}")
    return numbers


def _is_finite(number: float) -> bool:
    """Whether float32 can hold it."""
    return abs(number) <= float(np.finfo(np.float32).max)


def _mix(bilm: BiLM, scalar_parameters: list[float] | None, gamma: float) -> ScalarMix:
    num_layers = bilm.config.lstm.num_layers + 1
    mix = ScalarMix(num_layers, name="scalar_mix")
    mix.build(None)
    if scalar_parameters is not None:
        if len(scalar_parameters) != num_layers:
            raise InputError(f"--mix: expected {num_layers} numbers, one a layer, found {len(scalar_parameters)}")
        mix.scalar_parameters.assign(scalar_parameters)
    if not _is_finite(gamma):
        raise InputError(f"--gamma: expected a finite number, found {gamma}")
    mix.gamma.assign(gamma)
    return mix


def _root(bilm: BiLM, mix: ScalarMix) -> tf.train.Checkpoint:
    """Returns the object to save: callable, with its signatures and variables as attributes."""
    model = bilm.config
    max_chars, dim = model.char_cnn.max_chars_per_token, model.lstm.projection_dim

    def outputs(char_ids):
        layers, mask = bilm(char_ids)
        # Only the mix is trainable.
        layers = tf.ensure_shape(tf.stop_gradient(layers), (None, mix.num_layers, None, 2 * dim))
        elmo = mix(layers)
        num_tokens = tf.reduce_sum(tf.cast(mask, tf.float32), 1, keepdims=True)
        result = {"layers": layers, "word_emb": layers[:, 0, :, :dim], "elmo": elmo, "mask": mask}
        result["default"] = tf.math.divide_no_nan(tf.reduce_sum(elmo, 1), num_tokens)
        result.update({f"lstm_outputs{number}": layers[:, number] for number in range(1, mix.num_layers)})
        return result

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, name="strings")])
    def default(strings):
        return outputs(in_graph.encode_tokens(*in_graph.split(strings), max_chars))

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None), tf.string, name="tokens"),
            tf.TensorSpec((None,), tf.int32, name="sequence_len"),
        ]
    )
    def tokens(tokens, sequence_len):
        return outputs(in_graph.encode_tokens(tokens, sequence_len, max_chars))

    @tf.function(input_signature=[tf.TensorSpec((None, None, max_chars), tf.int32, name="char_ids")])
    def char_ids(char_ids):
        return outputs(char_ids)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, name="strings"), tf.TensorSpec((), tf.bool)])
    def call(strings, training=False):  # a reusable SavedModel takes it; nothing depends on it
        return default(strings)

    root = tf.train.Checkpoint(default=default, tokens=tokens, char_ids=char_ids)
    root.__call__ = call
    root.trainable_variables = [variable.value for variable in mix.trainable_variables]
    frozen = [variable for layer in (bilm.char_cnn, *bilm.lstms[0], *bilm.lstms[1]) for variable in layer.variables]
    root.variables = [*root.trainable_variables, *(variable.value for variable in frozen)]
    root.regularization_losses = []
    return root


def _assets(folder: pathlib.Path, config: config_lib.Config, provenance: dict[str, Any]) -> list[tf.saved_model.Asset]:
    contents = {"config.json": config_lib.to_dict(config), "provenance.json": {"elmo_tf": __version__, **provenance}}
    for name, values in contents.items():
        (folder / name).write_text(json.dumps(values, indent=2) + "\n", "utf-8")
    return [tf.saved_model.Asset(str(folder / name)) for name in contents]


def _verify(savedmodel: pathlib.Path, scratch: pathlib.Path, root: tf.train.Checkpoint) -> None:
    """Has a process that imports TensorFlow only compare the written model with this one."""
    expected = {name: value.numpy() for name, value in root.default(tf.constant(PROBES)).items()}
    np.savez(scratch, probes=[probe.encode() for probe in PROBES], **expected)
    command = [sys.executable, "-P", verify_savedmodel.__file__, str(savedmodel), str(scratch)]
    # On the CPU, as this process: a GPU's memory may be taken, and its products are less exact.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise RuntimeError(
            f"the exported model failed its verification in a fresh process:\n{done.stdout}{done.stderr}"
        )
