"""One checkpoint: a folder with the variables, the LSTM states, the position, and the checksums of all of these.

step-00000500/variables.*      weights and the optimizer's values, as `tf.train.Checkpoint` writes them
              states.npz       the LSTM states of all streams
              progress.json    step, position in the data, whose data
              manifest.json    bytes and CRC-32C of each of the above; written last
"""

import dataclasses
import json
import pathlib
import zipfile

import google_crc32c
import numpy as np
import tensorflow as tf

from elmo_tf.bilm.model import DIRECTIONS, BiLM, States
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.records.windows import Position
from elmo_tf.training.optimizer import Optimizer

MANIFEST_FILE = "manifest.json"
PROGRESS_FILE = "progress.json"
STATES_FILE = "states.npz"
_VARIABLES = "variables"
_READ_AT_ONCE = 2**24  # bytes


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far training has come, apart from the variables."""

    step: int = 0
    position: Position | None = None  # None: at the beginning of the data
    data_id: str | None = None  # the records that `position` belongs to
    states: States | None = None  # the LSTM states of all streams; None: zero


def write(folder: pathlib.Path, bilm: BiLM, optimizer: Optimizer | None, progress: Progress) -> None:
    """Makes `folder` and writes a checkpoint in it, down to the disk.

    Raises:
        OSError: if that fails, for instance because the disk is full.
    """
    folder.mkdir(parents=True)
    try:
        _variables(bilm, optimizer).write(str(folder / _VARIABLES))
    except tf.errors.OpError as error:
        raise OSError(f"{folder}: {error.message}") from error
    position = progress.position and progress.position.to_json()
    _write_json(folder / PROGRESS_FILE, {"step": progress.step, "data_id": progress.data_id, "position": position})
    if progress.states is not None:
        np.savez(folder / STATES_FILE, **_named_states(progress.states))
    files = sorted(folder.iterdir())
    _write_json(folder / MANIFEST_FILE, {path.name: _described(path) for path in files})
    for path in (*files, folder / MANIFEST_FILE, folder):
        staging.sync(path)


def check(folder: pathlib.Path) -> None:
    """Raises `InputError`, naming the folder, unless its files are those that were written, byte for byte."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
        for name, described in manifest.items():
            found = _described(folder / name)
            if found != described:
                raise _damaged(folder, f"{name} with {found}, not {described}")
    except (OSError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(folder, error) from error


def read(folder: pathlib.Path, bilm: BiLM, optimizer: Optimizer | None = None) -> Progress:
    """Reads a checkpoint into `bilm` and, if given, `optimizer`; returns the progress saved with them.

    Raises:
        InputError: if the checkpoint is damaged; nothing has been read then.
    """
    check(folder)
    try:
        return _read(folder, bilm, optimizer)
    except (tf.errors.OpError, OSError, ValueError, LookupError, AssertionError, zipfile.BadZipFile) as error:
        raise _damaged(folder, error) from error


def _read(folder: pathlib.Path, bilm: BiLM, optimizer: Optimizer | None) -> Progress:
    status = _variables(bilm, optimizer).read(str(folder / _VARIABLES))
    status.assert_existing_objects_matched()
    status.expect_partial()
    values = json.loads((folder / PROGRESS_FILE).read_text("utf-8"))
    states = None
    if (folder / STATES_FILE).exists():
        with np.load(folder / STATES_FILE) as arrays:
            states = _unnamed_states(dict(arrays), bilm.config.lstm.num_layers)
    position = values["position"] and Position.from_json(values["position"])
    return Progress(values["step"], position, values["data_id"], states)


def _damaged(folder: pathlib.Path, found: object) -> InputError:
    return InputError(f"{folder}: expected an intact checkpoint, found {found}")


def _described(path: pathlib.Path) -> dict[str, int | str]:
    """Returns a file's size and checksum."""
    checksum = google_crc32c.Checksum()
    with path.open("rb") as file:
        while content := file.read(_READ_AT_ONCE):
            checksum.update(content)
    return {"bytes": path.stat().st_size, "crc32c": checksum.digest().hex()}


def _write_json(path: pathlib.Path, values: dict) -> None:
    path.write_text(json.dumps(values) + "\n", "utf-8")


def _variables(bilm: BiLM, optimizer: Optimizer | None) -> tf.train.Checkpoint:
    """Returns the checkpoint object; names in it are the variables' paths, so that code may move around them."""
    variables = {variable.path: variable.value for variable in bilm.trainable_variables}
    parts = {"bilm": _tracked(variables)}
    if optimizer is not None:
        for name, slot in optimizer.slots.items():
            parts[name] = _tracked(dict(zip(variables, slot, strict=True)))
    return tf.train.Checkpoint(**parts)


def _tracked(variables: dict[str, tf.Variable]) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(**{path.replace("/", "."): variable for path, variable in variables.items()})


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
