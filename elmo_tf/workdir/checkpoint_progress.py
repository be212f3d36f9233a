"""How far a training has come, in a checkpoint: `progress.json` and `states.npz`."""

import json
import math
import pathlib
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np

from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from elmo_tf.model.encoder import States
from elmo_tf.model.names import DIRECTIONS
from elmo_tf.records.windows import Position

PROGRESS_FILE = "progress.json"
STATES_FILE = "states.npz"
_Epochs = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far training has come, apart from the variables.

    Epochs before and after `offset_step` are counted separately, because the number of tokens per step changed there.
    """

    step: Count
    position: Position | None = None  # of the next window; None: the beginning of the data
    data_id: str | None = None  # identifies the records that `position` is in
    unroll_steps: Count | None = None  # tokens of each stream per step; None: no step was made
    offset_step: Count = msgspec.field(name="begun_step", default=0)
    epoch_offset: _Epochs = msgspec.field(name="begun_epochs", default=0.0)  # the epochs until `offset_step`
    # The LSTM states of all streams, `model.walk.States` of arrays, which are in `states.npz`; None: zero.
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
        (folder / PROGRESS_FILE).write_text(json.dumps(values) + "\n", "utf-8")
        if self.states is not None:
            np.savez(folder / STATES_FILE, **_named(self.states))

    @classmethod
    def read(cls, folder: pathlib.Path, num_layers: int) -> "Progress":
        """Reads what `write` wrote, of a network with `num_layers` LSTM layers per direction."""
        file = folder / PROGRESS_FILE
        progress = json_file.parse(file.read_bytes(), cls, str(file))
        if not (folder / STATES_FILE).exists():
            return progress
        with np.load(folder / STATES_FILE) as arrays:
            return msgspec.structs.replace(progress, states=_unnamed(arrays, num_layers))


def _named(states: States) -> dict[str, Any]:
    return {
        f"{direction}_{number}_{part}": np.asarray(value)
        for direction, layers in zip(DIRECTIONS, states, strict=True)
        for number, pair in enumerate(layers)
        for part, value in zip(("cell", "recurrent"), pair, strict=True)
    }


def _unnamed(arrays: Mapping[str, np.ndarray], num_layers: int) -> States:
    forward, backward = (
        tuple((arrays[f"{name}_{n}_cell"], arrays[f"{name}_{n}_recurrent"]) for n in range(num_layers))
        for name in DIRECTIONS
    )
    return forward, backward
