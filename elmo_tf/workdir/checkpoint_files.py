"""One checkpoint: a folder with the variables, the LSTM states and the position in the data.

step-00000500/variables.*      weights and the optimizer's values, as `tf.train.Checkpoint` writes them
              states.npz       the LSTM states of all streams
              progress.json    step, position in the data, checksum of the data
              manifest.json    CRC-32C of each file above but the variables' values; written last

TensorFlow checks the values itself when it reads them, but not all of the index.
"""

import contextlib
import dataclasses
import math
import pathlib
import sys
import zipfile
from collections.abc import Iterator, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, Annotated, Any

import google_crc32c
import msgspec
import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging
from elmo_tf.model.variables import DIRECTIONS, relative_names
from elmo_tf.records.windows import Position

if TYPE_CHECKING:  # checkpoints are read into an existing network
    from elmo_tf.model.bilm import States
    from elmo_tf.model.fast import BiLM

MANIFEST_FILE = "manifest.json"
PROGRESS_FILE = "progress.json"
_STATES_FILE = "states.npz"
_OLD_KEYS = {"begun_step": "offset_step", "begun_epochs": "epoch_offset"}  # of `progress.json`, until version 0.1
_VARIABLES = "variables"
_INDEX_FILE = f"{_VARIABLES}.index"
# An optimizer's slots by name: a variable for each of the network's.
Slots = Mapping[str, list[tf.Variable]]
# First by part of a checkpoint (`bilm` or a slot of the optimizer), then by name.
Parts = dict[str, dict[str, tf.Variable]]
Values = dict[str, dict[str, tf.Tensor]]
# Raised for files that are missing or damaged.
_DAMAGE = (
    *(FileNotFoundError, ValueError, LookupError, EOFError, AssertionError, zipfile.BadZipFile),
    *(tf.errors.NotFoundError, tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError),
)
_Epochs = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """Training progress, apart from the variables.

    Epochs before and after `offset_step` are counted separately, because the number of tokens per step changed there.
    """

    step: json_file.Count
    position: Position | None = None  # of the next window; None: the beginning of the data
    data_id: str | None = None  # identifies the records that `position` is in
    unroll_steps: json_file.Count | None = None  # tokens of each stream per step; None: no step was made
    offset_step: json_file.Count = 0
    epoch_offset: _Epochs = 0.0  # the epochs until `offset_step`
    # The LSTM states of all streams, `model.bilm.States` of arrays, which are in `states.npz`; None: zero.
    states: Any = None

    @property
    def num_streams(self) -> int | None:
        """The number of streams; None before the first step."""
        return None if self.states is None else len(self.states[0][0][0])

    def epochs_at(self, step: int, steps_per_epoch: float) -> float:
        """Returns the number of epochs after `step` steps."""
        return self.epoch_offset + (step - self.offset_step) / steps_per_epoch

    def step_after(self, epochs: float, steps_per_epoch: float) -> int:
        """Returns the step at which `epochs` epochs are complete."""
        return self.offset_step + math.ceil((epochs - self.epoch_offset) * steps_per_epoch)

    def write(self, folder: pathlib.Path) -> None:
        """Writes `progress.json` and, unless the states are zero, `states.npz`."""
        values = msgspec.to_builtins(msgspec.structs.replace(self, states=None))
        (folder / PROGRESS_FILE).write_text(json_file.dumps(values) + "\n", "utf-8")
        if self.states is not None:
            np.savez(folder / _STATES_FILE, **_state_arrays(self.states))

    @classmethod
    def read(cls, folder: pathlib.Path, num_layers: int) -> "Progress":
        """Reads what `write` wrote, of a network with `num_layers` LSTM layers per direction."""
        file = folder / PROGRESS_FILE
        values = json_file.parse(file.read_bytes(), dict[str, Any], str(file))
        progress = json_file.convert({_OLD_KEYS.get(key, key): values[key] for key in values}, cls, str(file))
        if not (folder / _STATES_FILE).exists():
            return progress
        with np.load(folder / _STATES_FILE) as arrays:
            return msgspec.structs.replace(progress, states=_states_of(arrays, num_layers))


class _File(msgspec.Struct, frozen=True):
    """A file in the manifest."""

    crc32c: str


class DamagedError(InputError):
    """A checkpoint's files are not the ones that were written."""


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The contents of a checkpoint, in memory, so that training continues while they are written."""

    values: Values
    progress: Progress


def take_snapshot(bilm: "BiLM", slots: Slots | None, progress: Progress) -> Snapshot:
    """Copies the values of all variables to the host; later steps do not change them."""

    def value(variable: tf.Variable) -> tf.Tensor:
        # TensorFlow never overwrites memory that was read: the variable's next update allocates new memory.
        read = variable.read_value()
        with tf.device("CPU:0"):
            return tf.identity(read)

    parts = _parts(bilm, slots)
    # Training waits for this copy; threads make it faster for large arrays.
    with futures.ThreadPoolExecutor() as pool:
        values = {part: dict(zip(named, pool.map(value, named.values()), strict=True)) for part, named in parts.items()}
    return Snapshot(values, progress)


def write(folder: pathlib.Path, snapshot: Snapshot) -> None:
    """Makes `folder`, writes a checkpoint into it and syncs it to disk; raises `OSError` if that fails."""
    folder.mkdir(parents=True)
    try:
        with tf.device("CPU:0"):
            parts = {
                part: {name: tf.Variable(value, trainable=False) for name, value in values.items()}
                for part, values in snapshot.values.items()
            }
            _tracked(parts).write(str(folder / _VARIABLES))
    except tf.errors.OpError as error:
        raise OSError(_message(error)) from error
    snapshot.progress.write(folder)
    files = sorted(folder.iterdir())
    manifest = {
        path.name: {"crc32c": _crc32c(path)} for path in files if not path.name.startswith(f"{_VARIABLES}.data-")
    }
    (folder / MANIFEST_FILE).write_text(json_file.dumps(manifest) + "\n", "utf-8")
    for path in (*files, folder / MANIFEST_FILE, folder):
        staging.sync(path)


def num_bytes(bilm: "BiLM", slots: Slots | None, states: "States | None") -> int:
    """Returns the size of a checkpoint on disk, without its small files."""
    arrays = tf.nest.flatten([_parts(bilm, slots), states or ()])
    return sum(math.prod(array.shape) * tf.as_dtype(array.dtype).size for array in arrays)


def check(folder: pathlib.Path) -> None:
    """Raises `DamagedError`, naming the folder, unless every file in the manifest has its checksum."""
    with _damage_named(folder):
        for path in folder.iterdir():
            if not path.is_file():  # reading a pipe would wait forever
                raise _damaged(folder, f"{path.name} is not a regular file")
        source = folder / MANIFEST_FILE
        manifest = json_file.parse(source.read_bytes(), dict[str, _File], str(source))
        for name in {PROGRESS_FILE, _INDEX_FILE} - manifest.keys():
            raise _damaged(folder, f"{MANIFEST_FILE} lacks {name}")
        for name, listed in manifest.items():
            if _crc32c(folder / name) != listed.crc32c:
                raise _damaged(folder, f"{name} differs from its checksum in {MANIFEST_FILE}")


def read(folder: pathlib.Path, bilm: "BiLM", slots: Slots | None = None) -> Progress:
    """Reads a checkpoint into `bilm` and, if given, `slots`; returns the progress saved with them.

    Raises:
        DamagedError: if the checkpoint is damaged.
        InputError: if it is the checkpoint of another network or optimizer; then nothing is read.
        OSError: if a file cannot be read, perhaps only temporarily.
    """
    check(folder)
    with _damage_named(folder):
        stored = tf.train.load_checkpoint(str(folder / _VARIABLES)).get_variable_to_shape_map()
    _check_shapes(folder, stored, _parts(bilm, slots))
    with _damage_named(folder):
        progress = Progress.read(folder, bilm.config.lstm.num_layers)
        status = _tracked(_parts(bilm, slots)).read(str(folder / _VARIABLES))
        status.assert_existing_objects_matched()
        status.expect_partial()
    return progress


def _check_shapes(folder: pathlib.Path, stored: dict[str, list[int]], parts: Parts) -> None:
    """Raises `InputError` unless the stored variables include those of `parts`, with the same shapes."""
    for part, variables in parts.items():
        if not any(name.startswith(f"{part}/") for name in stored):
            problem = f"it has weights, but not the optimizer's {part}; elmo-tf finetune starts from weights alone"
            raise InputError(str(folder), problem)
        for name, variable in variables.items():
            # TensorFlow doubles dots in names.
            shape = stored.get(f"{part}/{name.replace('.', '..')}/.ATTRIBUTES/VARIABLE_VALUE")
            if shape != list(variable.shape):
                stored_shape = "missing" if shape is None else f"of shape {tuple(shape)}"
                problem = f"{part}/{name} is {stored_shape}; config.json and vocab.txt ask for {tuple(variable.shape)}"
                raise InputError(str(folder), problem)


@contextlib.contextmanager
def _damage_named(folder: pathlib.Path) -> Iterator[None]:
    """Turns errors about missing or malformed files into a `DamagedError`; those of disk and memory stay."""
    try:
        yield
    except (DamagedError, tf.errors.ResourceExhaustedError):
        raise
    except _DAMAGE as error:
        raise _damaged(folder, _message(error) if isinstance(error, tf.errors.OpError) else error) from error
    except tf.errors.OpError as error:
        raise OSError(f"{folder} cannot be read: {_message(error)}") from error
    except OSError as error:
        raise OSError(f"{folder} cannot be read: {error.strerror or error}") from error


def _message(error: tf.errors.OpError) -> str:
    """Returns the message of TensorFlow's error about a file, without the names of operations."""
    return error.message.rpartition("}}")[2].partition(" [Op:")[0].strip()


def _damaged(folder: pathlib.Path, problem: object) -> DamagedError:
    return DamagedError(str(folder), f"the checkpoint is damaged: {problem}")


def _crc32c(path: pathlib.Path) -> str:
    return f"{google_crc32c.value(path.read_bytes()):08x}"


def _parts(bilm: "BiLM", slots: Slots | None) -> Parts:
    """Returns the variables by part and name; the names do not depend on where in the code a layer is made."""
    variables = {name.replace("/", "."): variable.value for name, variable in relative_names(bilm).items()}
    return {"bilm": variables} | {name: dict(zip(variables, slot, strict=True)) for name, slot in (slots or {}).items()}


def _tracked(parts: Parts) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(**{name: tf.train.Checkpoint(**variables) for name, variables in parts.items()})


def _state_arrays(states: "States") -> dict[str, Any]:
    return {
        f"{direction}_{number}_{part}": np.asarray(value)
        for direction, layers in zip(DIRECTIONS, states, strict=True)
        for number, pair in enumerate(layers)
        for part, value in zip(("cell", "recurrent"), pair, strict=True)
    }


def _states_of(arrays: Mapping[str, np.ndarray], num_layers: int) -> "States":
    forward, backward = (
        tuple((arrays[f"{name}_{n}_cell"], arrays[f"{name}_{n}_recurrent"]) for n in range(num_layers))
        for name in DIRECTIONS
    )
    return forward, backward
