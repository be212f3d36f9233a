"""A workdir: the configuration, the vocabulary, and checkpoints that are either whole or not there.

WORKDIR/config.json                     the Config
        vocab.txt                       the softmax's words; absent if there is no softmax
        checkpoints/step-00000500/      variables.*, progress.json, states.npz
        logs/                           TensorBoard
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf import staging
from elmo_tf.bilm import DIRECTIONS, BiLM, States
from elmo_tf.data import vocabulary as vocabulary_lib
from elmo_tf.data.windows import Position
from elmo_tf.errors import InputError
from elmo_tf.training.optimizer import Adagrad

CONFIG_FILE = "config.json"
VOCABULARY_FILE = "vocab.txt"
CHECKPOINTS_FOLDER = "checkpoints"
LOGS_FOLDER = "logs"
_PREFIX = "step-"


@dataclasses.dataclass(frozen=True)
class Workdir:
    """A folder that `new_workdir` made."""

    path: pathlib.Path
    config: config_lib.Config
    vocabulary: vocabulary_lib.Vocabulary | None

    @property
    def logs(self) -> pathlib.Path:
        """TensorBoard's log folder."""
        return self.path / LOGS_FOLDER

    def new_bilm(self, product_dtype: str = "float32") -> BiLM:
        """Returns the network of the configuration, with freshly drawn weights."""
        vocab_size = None if self.vocabulary is None else len(self.vocabulary)
        return BiLM(self.config.model, vocab_size, product_dtype)

    def trained_bilm(self, argument: str = "--workdir") -> BiLM:
        """Returns the network with the newest checkpoint's weights; `InputError` if there is no checkpoint."""
        path = latest(self)
        if path is None:
            raise InputError(f"{argument}: expected a workdir with a checkpoint, found none in {self.path}")
        bilm = self.new_bilm()
        restore(path, bilm)
        return bilm


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far training has come, apart from the variables."""

    step: int = 0
    position: Position | None = None  # None: at the beginning of the data
    data_id: str | None = None  # the records that `position` belongs to
    states: States | None = None  # the LSTM states of all streams; None: zero


@contextlib.contextmanager
def new_workdir(
    path: str | os.PathLike, config: config_lib.Config, vocabulary: vocabulary_lib.Vocabulary | None
) -> Iterator[Workdir]:
    """Gives a new workdir to fill; it stands at `path` when the block is left, or nothing does if that is by an error.

    Raises:
        InputError: if something stands at `path` already.
    """
    with staging.new_folder(path, "--workdir") as folder:
        _write_config(folder / CONFIG_FILE, config)
        if vocabulary is not None:
            (folder / VOCABULARY_FILE).write_bytes(vocabulary.to_bytes())
        yield Workdir(folder, config, vocabulary)


def exists(path: str | os.PathLike) -> bool:
    """Whether there is a workdir at `path`."""
    return (pathlib.Path(path) / CONFIG_FILE).is_file()


def update_config(workdir: Workdir) -> None:
    """Writes the configuration of `workdir` to its folder, in one go."""
    staged = _hidden(workdir.path / CONFIG_FILE)
    _write_config(staged, workdir.config)
    os.replace(staged, workdir.path / CONFIG_FILE)


def open_workdir(path: str | os.PathLike, argument: str = "--workdir") -> Workdir:
    """Returns the workdir at `path`; raises `InputError`, naming `argument`, if there is none."""
    folder = pathlib.Path(path)
    if not exists(folder):
        raise InputError(f"{argument}: expected a workdir of `elmo-tf train`, found no {CONFIG_FILE} in {folder}")
    try:
        values = json.loads((folder / CONFIG_FILE).read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{argument}: expected JSON, found {error}: {folder / CONFIG_FILE}") from None
    config = config_lib.from_dict(values)
    source = folder / VOCABULARY_FILE
    vocabulary = vocabulary_lib.from_bytes(source.read_bytes(), str(source)) if source.exists() else None
    return Workdir(folder, config, vocabulary)


def save(workdir: Workdir, bilm: BiLM, optimizer: Adagrad | None, progress: Progress) -> pathlib.Path:
    """Writes a checkpoint, whole or not at all, and removes the oldest above `train.keep_checkpoints`."""
    folder = workdir.path / CHECKPOINTS_FOLDER / f"{_PREFIX}{progress.step:08d}"
    staged = _hidden(folder)
    for left in folder.parent.glob(".*"):  # of a process that was killed
        shutil.rmtree(left)
    staged.mkdir(parents=True)
    _variables(bilm, optimizer).write(str(staged / "variables"))
    position = progress.position and progress.position.to_json()
    values = {"step": progress.step, "data_id": progress.data_id, "position": position}
    (staged / "progress.json").write_text(json.dumps(values) + "\n", "utf-8")
    if progress.states is not None:
        np.savez(staged / "states.npz", **_named_states(progress.states))
    if folder.exists():
        _remove(folder)
    os.replace(staged, folder)
    for old in _checkpoints(workdir)[: -workdir.config.train.keep_checkpoints]:
        _remove(old)
    return folder


def _remove(folder: pathlib.Path) -> None:
    """Removes a checkpoint so that no part of it is ever taken for one."""
    gone = folder.with_name(f".{folder.name}.removed")
    os.replace(folder, gone)
    shutil.rmtree(gone)


def latest(workdir: Workdir) -> pathlib.Path | None:
    """Returns the newest checkpoint's folder, or None."""
    found = _checkpoints(workdir)
    return found[-1] if found else None


def restore(path: pathlib.Path, bilm: BiLM, optimizer: Adagrad | None = None) -> Progress:
    """Reads a checkpoint into `bilm` and, if given, `optimizer`; returns the progress saved with them.

    Raises:
        InputError: if the checkpoint is damaged.
    """
    try:
        return _restore(path, bilm, optimizer)
    except (tf.errors.OpError, ValueError, LookupError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path}: expected an intact checkpoint, found {error}; without this folder the one before it is used"
        ) from error


def _restore(path: pathlib.Path, bilm: BiLM, optimizer: Adagrad | None) -> Progress:
    status = _variables(bilm, optimizer).read(str(path / "variables"))
    status.assert_existing_objects_matched()
    status.expect_partial()
    values = json.loads((path / "progress.json").read_text("utf-8"))
    states = None
    if (path / "states.npz").exists():
        with np.load(path / "states.npz") as arrays:
            states = _unnamed_states(dict(arrays), bilm.config.lstm.num_layers)
    position = values["position"] and Position.from_json(values["position"])
    return Progress(values["step"], position, values["data_id"], states)


def _write_config(path: pathlib.Path, config: config_lib.Config) -> None:
    path.write_text(json.dumps(config_lib.to_dict(config), indent=2) + "\n", "utf-8")


def provenance(workdir: Workdir) -> dict[str, Any]:
    """Returns what an export tells about the training: the step and the vocabulary."""
    path, vocabulary = latest(workdir), workdir.vocabulary
    return {
        "step": path and int(path.name.removeprefix(_PREFIX)),
        "vocabulary": vocabulary and {"size": len(vocabulary), "sha256": vocabulary.sha256()},
    }


def _variables(bilm: BiLM, optimizer: Adagrad | None) -> tf.train.Checkpoint:
    """Returns the checkpoint object; names in it are the variables' paths, so that code may move around them."""
    variables = {variable.path: variable.value for variable in bilm.trainable_variables}
    parts = {"bilm": _tracked(variables)}
    if optimizer is not None:
        parts["accumulators"] = _tracked(dict(zip(variables, optimizer.accumulators, strict=True)))
    return tf.train.Checkpoint(**parts)


def _tracked(variables: dict[str, tf.Variable]) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(**{path.replace("/", "."): variable for path, variable in variables.items()})


def _checkpoints(workdir: Workdir) -> list[pathlib.Path]:
    return sorted((workdir.path / CHECKPOINTS_FOLDER).glob(f"{_PREFIX}*"))


def _hidden(folder: pathlib.Path) -> pathlib.Path:
    return folder.with_name(f".{folder.name}.incomplete")


def _named_states(states: States) -> dict[str, np.ndarray]:
    return {
        f"{direction}_{number}_{part}": np.asarray(value)
        for direction, layers in zip(DIRECTIONS, states, strict=True)
        for number, pair in enumerate(layers)
        for part, value in zip(("cell", "recurrent"), pair, strict=True)
    }


def _unnamed_states(arrays: dict[str, np.ndarray], num_layers: int) -> States:
    return tuple(
        tuple((arrays[f"{name}_{n}_cell"], arrays[f"{name}_{n}_recurrent"]) for n in range(num_layers))
        for name in DIRECTIONS
    )
