"""The order of an export: build, save to a staging folder, verify, move into place."""

import errno
import logging
import os
import pathlib
import tempfile
from typing import Any

import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.bilm.packed import PackedBiLM
from elmo_tf.errors import InputError, renamed
from elmo_tf.files import staging
from elmo_tf.savedmodel import (
    assets,
    checksums,
    mix,
    root,
    sample_vectors,
    states,
    stored_weights,
    verification,
    warmup,
)
from elmo_tf.text import in_graph

_log = logging.getLogger("elmo_tf")


def export(
    bilm: BiLM,
    config: config_lib.Config,
    output: str | os.PathLike,
    scalar_parameters: list[float] | None = None,
    gamma: float = 1.0,
    provenance: dict[str, Any] | None = None,
    tokenizer: str = "whitespace",
    precision: str = "float32",
    warm_text: str | os.PathLike | None = None,
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
        tokenizer: how the signature `default` parts sentences, `"whitespace"` or `"unicode"`; with the latter, programs
            that load the model have to import tensorflow_text first.
        precision: of the stored weights, `"float32"` or `"bfloat16"`, which takes half the space.
        warm_text: a text file; every sentence then starts from the state after it. None: from zero.

    Returns:
        the new version's folder.

    Raises:
        InputError: if `output` is no folder, there are not as many parameters as layers, no such tokenizer or
            precision, or no words in `warm_text`.
        OSError: if the model cannot be written, for instance because the disk is full; nothing is left then.
        VerificationError: if the written model does not do in another process what `bilm` does here; nothing is left
            then.
    """
    folder = pathlib.Path(output)
    if tokenizer not in in_graph.TOKENIZERS:
        raise InputError(f"--tokenizer: expected one of {', '.join(in_graph.TOKENIZERS)}, found {tokenizer!r}")
    if precision not in stored_weights.PRECISIONS:
        raise InputError(f"--precision: expected one of {', '.join(stored_weights.PRECISIONS)}, found {precision!r}")
    typical = None if warm_text is None else states.read_typical(warm_text)
    _next_version(folder)
    mixed, initial = mix.build_mix(bilm.config.lstm.num_layers + 1, scalar_parameters, gamma), states.zero(bilm)
    built = root.build_root(PackedBiLM.of(bilm), mixed, tokenizer, precision, initial)
    about = {"tokenizer": tokenizer, "precision": precision, "initial_state": {"kind": "zero"}, **(provenance or {})}
    if typical is not None:
        states.warm_up(built, initial, typical.sentences, tokenizer)
        about["initial_state"] = {"kind": "warm", "text_sha256": typical.sha256, "sentences": len(typical.sentences)}
    finished = folder / f"unnumbered-{os.getpid()}"
    with renamed(path="output"), staging.new_folder(finished) as made, tempfile.TemporaryDirectory() as scratch:
        built.assets = assets.write_assets(pathlib.Path(scratch), config, about)
        _save(built, made)
        name, max_chars = os.path.basename(os.path.abspath(folder)), config.model.char_cnn.max_chars_per_token
        before = {key: state.numpy() for key, state in built.initial_states(1).items()}
        warmup.write_warmup(made, name, max_chars, before)
        sample_vectors.write_probes(made, built, tokenizer)
        checksums.write(made)
        _log.info("saved; verifying it in a process that imports TensorFlow only")
        problems = verification.problems_in_fresh_process(made)
        if problems:
            told = "\n".join(["the exported model failed its verification in a fresh process:", *problems])
            raise verification.VerificationError(told)
    return _number(finished)


def _save(built: tf.train.Checkpoint, folder: pathlib.Path) -> None:
    signatures = {"serving_default": built.default, **{name: getattr(built, name) for name in root.SIGNATURES}}
    try:
        tf.saved_model.save(built, str(folder), signatures=signatures)
    except tf.errors.OpError as error:
        raise OSError(f"cannot write the SavedModel: {error.message}") from error


def _number(finished: pathlib.Path) -> pathlib.Path:
    """Renames a finished export to the next version, which another one may be taking at the same time."""
    while True:
        version = finished.with_name(str(_next_version(finished.parent)))
        try:
            return finished.rename(version)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _next_version(folder: pathlib.Path) -> int:
    """Returns one above the versions that are in the folder.

    Raises:
        InputError: if `folder` cannot be the folder of a model's versions.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output: expected a folder for the model's versions, found a file: {folder}")
    if (folder / checksums.GRAPH_FILE).exists():
        raise InputError(f"--output: expected the folder of a model's versions, found one version: {folder}")
    there = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()] if folder.exists() else []
    return max(there, default=0) + 1
