"""The layer weights that a model has learned, as the paper's figure 2 draws them."""

import io
import os
import pathlib
import re
import zipfile
from collections.abc import Sequence
from typing import NamedTuple

import h5py
import numpy as np
from matplotlib.figure import Figure

from elmo_tf.errors import InputError
from elmo_tf.files.staging import write_file

_WEIGHTS_FILE = "model.weights.h5"
_MIX = re.compile(r"(?P<layer>.+)/mixes/scalar_mix(?:_(?P<number>\d+))?/vars")
_ROLES = {1: ("",), 2: ("input", "output")}  # of a layer's mixes, as the paper uses two


class Mix(NamedTuple):
    """One mix of a saved model."""

    name: str  # model and role
    weights: list[float]  # softmax-normalized, the token layer's first
    gamma: float


def read_all(paths: Sequence[str | os.PathLike], argument: str = "--model") -> list[Mix]:
    """Returns the mixes of several files, the folder in their names where files of several folders have one name."""
    stems = [pathlib.Path(path).stem for path in paths]
    found = []
    for path, stem in zip(paths, stems, strict=True):
        folder = f"{pathlib.Path(path).absolute().parent.name}/" if stems.count(stem) > 1 else ""
        found += [mix._replace(name=folder + mix.name) for mix in read(path, argument)]
    return found


def read(path: str | os.PathLike, argument: str = "--model") -> list[Mix]:
    """Returns the mixes of the ELMo layers in a `.keras` file, read without building the model.

    Raises:
        InputError: if it is no such file, or holds no ELMo layer.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_WEIGHTS_FILE) as packed, h5py.File(packed, "r") as file:
            found = _parameters(file)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{argument}: expected a model saved as .keras, found {error}: {path}") from None
    if not found:
        raise InputError(f"{argument}: expected a model with an elmo_tf.ELMo layer, found none in {path}")
    layers = {layer for layer, _ in found}
    ends = [_last(layer) for layer in layers]
    mixes = []
    for (layer, number), (parameters, gamma) in sorted(found.items()):
        count = sum(other == layer for other, _ in found)
        role = _ROLES.get(count, [str(one) for one in range(count)])[number]
        several = "" if len(layers) == 1 else layer if ends.count(_last(layer)) > 1 else _last(layer)
        weights = np.exp(parameters - parameters.max())
        name = " ".join(part for part in (pathlib.Path(path).stem, several, role) if part)
        mixes.append(Mix(name, [round(float(one), 4) for one in weights / weights.sum()], float(gamma)))
    return mixes


def plot(mixes: list[Mix], output: str | os.PathLike) -> None:
    """Draws the mixes side by side, the top layer above, to a PNG file, which is written whole or not at all.

    Raises:
        InputError: if the mixes have different numbers of layers, or `output` is a folder.
    """
    path = pathlib.Path(output)
    if path.is_dir():
        raise InputError(f"--output: expected a PNG file, found a folder: {output}")
    counts = sorted({len(mix.weights) for mix in mixes})
    if len(counts) > 1:
        raise InputError(f"--model: expected models with as many layers each, found {counts}")
    values = np.array([mix.weights for mix in mixes]).T[::-1]
    figure = Figure(figsize=(1.5 + 1.1 * len(mixes), 1.6 + 0.6 * len(values)), layout="constrained")  # needs no screen
    axes = figure.subplots()
    image = axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(mixes)), [mix.name for mix in mixes], rotation=30, ha="right")
    axes.set_yticks(range(len(values)), [f"layer {number}" for number in reversed(range(len(values)))])
    for (row, column), value in np.ndenumerate(values):
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black")
    figure.colorbar(image, ax=axes, label="weight after the softmax")
    path.parent.mkdir(parents=True, exist_ok=True)
    with io.BytesIO() as picture:
        figure.savefig(picture, format="png", dpi=150)
        write_file(path, picture.getvalue())


def _last(layer: str) -> str:
    return layer.rpartition("/")[2]


def _parameters(file: h5py.File) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
    """Returns scalar parameters and gamma, by the layer's path in the file and the mix's number."""
    found = {}

    def visit(name, item):
        match = _MIX.fullmatch(name)
        if match and isinstance(item, h5py.Group):
            gamma, parameters = sorted((one[()] for one in item.values()), key=np.ndim)
            found[match["layer"], int(match["number"] or 0)] = (parameters, gamma)

    file.visititems(visit)
    return found
