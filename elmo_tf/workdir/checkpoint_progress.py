"""How far a training has come, in a checkpoint: `progress.json` and `states.npz`."""

import dataclasses
import json
import pathlib
import sys
from collections.abc import Mapping
from typing import Annotated

import msgspec
import numpy as np

from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from elmo_tf.model.names import DIRECTIONS
from elmo_tf.model.walk import States
from elmo_tf.records.windows import Position

PROGRESS_FILE = "progress.json"
STATES_FILE = "states.npz"
_Epochs = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


class _ProgressFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """`progress.json`; `Progress` says what the values mean."""

    step: Count
    data_id: str | None
    position: str | None  # JSON of a `Position`, its records in base64
    unroll_steps: Count | None = None
    offset_step: Count = msgspec.field(name="begun_step", default=0)
    epoch_offset: _Epochs = msgspec.field(name="begun_epochs", default=0.0)


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far training has come, apart from the variables."""

    step: int = 0
    position: Position | None = None  # None: at the beginning of the data
    data_id: str | None = None  # identifies the records that `position` is in
    states: States | None = None  # the LSTM states of all streams; None: zero
    unroll_steps: int | None = None  # tokens of each stream per step; None: not known
    # The step at which the number of tokens per step last changed, and the epochs until then.
    offset_step: int = 0
    epoch_offset: float = 0.0

    @property
    def num_streams(self) -> int | None:
        """The number of streams; None before the first step."""
        return None if self.states is None else len(self.states[0][0][0])

    def write(self, folder: pathlib.Path) -> None:
        """Writes `progress.json` and, unless the states are zero, `states.npz`."""
        position = self.position and json.dumps(msgspec.to_builtins(self.position))
        counts = self.unroll_steps, self.offset_step, self.epoch_offset
        values = msgspec.to_builtins(_ProgressFile(self.step, self.data_id, position, *counts))
        (folder / PROGRESS_FILE).write_text(json.dumps(values) + "\n", "utf-8")
        if self.states is not None:
            np.savez(folder / STATES_FILE, **_named(self.states))

    @classmethod
    def read(cls, folder: pathlib.Path, num_layers: int) -> "Progress":
        """Reads what `write` wrote, of a network with `num_layers` LSTM layers per direction."""
        file = folder / PROGRESS_FILE
        stored = json_file.parse(file.read_bytes(), _ProgressFile, str(file))
        states = None
        if (folder / STATES_FILE).exists():
            with np.load(folder / STATES_FILE) as arrays:
                states = _unnamed(arrays, num_layers)
        position = None if stored.position is None else json_file.parse(stored.position, Position, str(file))
        counts = stored.unroll_steps, stored.offset_step, stored.epoch_offset
        return cls(stored.step, position, stored.data_id, states, *counts)


def _named(states: States) -> dict[str, np.ndarray]:
    return {
        f"{direction}_{number}_{part}": np.asarray(value)
        for direction, layers in zip(DIRECTIONS, states, strict=True)
        for number, pair in enumerate(layers)
        for part, value in zip(("cell", "recurrent"), pair, strict=True)
    }


def _unnamed(arrays: Mapping[str, np.ndarray], num_layers: int) -> States:
    return tuple(
        tuple((arrays[f"{name}_{n}_cell"], arrays[f"{name}_{n}_recurrent"]) for n in range(num_layers))
        for name in DIRECTIONS
    )
