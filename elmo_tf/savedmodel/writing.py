"""The order of an export: build, save to a staging folder, verify, rename."""

import errno
import logging
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.model.fast import BiLM
from elmo_tf.model.scalar_mix import Mix, build_mix
from elmo_tf.published import card
from elmo_tf.savedmodel import assets, checksums, contract, root, sample_calls, verification
from elmo_tf.text import tokenizers
from elmo_tf.text.vocabulary import Vocabulary

_log = logging.getLogger("elmo_tf")


def export(
    bilm: BiLM,
    config: config_lib.Config,
    output: str | os.PathLike,
    mix: Mix = "average",
    gamma: float = 1.0,
    provenance: dict[str, Any] | None = None,
    tokenizer: str = "whitespace",
    vocabulary: Vocabulary | None = None,
    facts: card.Facts | None = None,
) -> pathlib.Path:
    """Writes `bilm` to the next version's folder in `output`, after a fresh process has verified it.

    Args:
        bilm: the network.
        config: the configuration for `assets/config.json`; `config.model` is the network's.
        output, mix, gamma, tokenizer: as for `elmo_tf.export`.
        provenance: JSON to keep in `assets/provenance.json`: where weights and vocabulary came from.
        vocabulary: the words of the network's softmax, which is then exported too, with the signature `score`.
        facts: what the model's card says beside its sizes and its mix.

    Returns:
        the new version's folder.

    Raises:
        InputError, OSError, VerificationError: as `elmo_tf.export`.
    """
    folder = pathlib.Path(output)
    tokenizers.check(tokenizer)
    scalar_mix = build_mix(bilm.config.lstm.num_layers + 1, mix, gamma)
    about = {"tokenizer": tokenizer, **(provenance or {})}

    def write(version: pathlib.Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            words = None
            if vocabulary is not None:
                words = pathlib.Path(scratch, pathlib.PurePosixPath(contract.VOCABULARY_FILE).name)
                words.write_bytes(vocabulary.to_bytes())
            softmax = bilm.softmax if vocabulary else None
            built = root.build_root(bilm, scalar_mix, tokenizer, softmax, words)
            signatures = _save(built, version, assets.write(pathlib.Path(scratch), config, about))
        name, max_chars = os.path.basename(os.path.abspath(folder)), config.model.char_cnn.max_chars_per_token
        sample_calls.write_warmup(version, name, max_chars)
        inputs = sample_calls.inputs_of(sample_calls.SENTENCES, max_chars)
        sample_calls.write(version, signatures, inputs, tokenizer)
        card.write(version, name, bilm.config, tokenizer, vocabulary, (facts or {}) | card.mix(mix, gamma))

    version = new_version(folder, write)
    if tokenizer == "unicode":
        _log.info("a program that loads it has to import tensorflow_text first")
    return version


def new_version(output: str | os.PathLike, write: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """Has `write` write a SavedModel and its samples, verifies it and returns its folder, the next in `output`."""
    staging.check_for_tensorflow(output)
    staging.check_link(output)
    folder = pathlib.Path(output)
    with staging.staged_folder(folder / str(_next_version(folder))) as staged:
        write(staged)
        checksums.write(staged)
        _log.info("saved; verifying it in a process that imports only TensorFlow")
        if problems := verification.problems_in_fresh_process(staged):
            lines = "\n".join(["the exported model failed its verification in a fresh process:", *problems])
            raise verification.VerificationError(lines)
        version = _rename(staged, folder)
    _log.info("verified: %s", version)
    return version


def _save(
    built: tf.train.Checkpoint, folder: pathlib.Path, asset_files: list[pathlib.Path]
) -> dict[str, tf.types.experimental.PolymorphicFunction]:
    """Saves `built` to `folder`; returns its functions by signature."""
    signatures = {name: getattr(built, function) for name, function in contract.SIGNATURES.items()}
    if hasattr(built, contract.SCORE):
        signatures[contract.SCORE] = built.score
    built.assets = [tf.saved_model.Asset(str(path)) for path in asset_files]
    try:
        tf.saved_model.save(built, str(folder), signatures=signatures)
    except tf.errors.OpError as error:
        raise OSError(f"cannot write the SavedModel: {error.message}") from error
    return signatures


def _rename(staged: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Gives a finished version the next number, which another export may take at the same time; returns its path."""
    while True:
        try:
            return staged.rename(folder / str(_next_version(folder)))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _next_version(folder: pathlib.Path) -> int:
    """Returns the highest version in the folder plus 1; `InputError` if it cannot be a model's folder."""
    if folder.exists() and not folder.is_dir():
        raise InputError(str(folder), "a file, not a folder for the model's versions")
    if (folder / contract.GRAPH_FILE).exists():
        raise InputError(str(folder), "this is a version of a model; give the folder that holds its versions")
    newest = assets.newest_of(os.listdir(folder)) if folder.exists() else None
    return int(newest or 0) + 1
