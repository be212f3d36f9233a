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
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

from elmo_tf.errors import InputError, reason
from elmo_tf.files import hdf5_file, stores

_MIX = re.compile(r"(?P<layer>.+)/mixes/scalar_mix(?:_(?P<number>\d+))?/vars")
_ROLES = {1: ("",), 2: ("input", "output")}  # names of a layer's mixes, by how many there are; the paper uses two


class Mix(NamedTuple):
    """A mix of a saved model."""

    name: str  # model and role
    weights: list[float]  # softmax-normalized, the token layer's first
    gamma: float


def read_all(models: Sequence[str | os.PathLike]) -> list[Mix]:
    """Returns the mixes of several files, as `read` does; files of the same name are prefixed with their folder's."""
    stems = [pathlib.Path(model).stem for model in models]
    mixes = []
    for model, stem in zip(models, stems, strict=True):
        folder = f"{pathlib.Path(model).absolute().parent.name}/" if stems.count(stem) > 1 else ""
        mixes += [mix._replace(name=folder + mix.name) for mix in read(model)]
    return mixes


def read(model: str | os.PathLike) -> list[Mix]:
    """Returns the mixes of the ELMo layers in a `.keras` file, read without building the model.

    Raises:
        InputError: if the file is not a model saved by Keras, or has no ELMo layer.
    """
    try:
        with hdf5_file.open_keras_weights(model) as file:
            stored = _parameters(file)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(str(model), f"not a model saved as .keras ({reason(error)})") from None
    if not stored:
        raise InputError(str(model), "the model has no elmo_tf.ELMo layer")
    num_layers = len({layer for layer, _ in stored})
    mixes = []
    for (layer, number), (parameters, gamma) in sorted(stored.items()):
        count = sum(other == layer for other, _ in stored)
        role = _ROLES.get(count, list(map(str, range(count))))[number]
        weights = np.exp(parameters - parameters.max())
        name = " ".join(filter(None, (pathlib.Path(model).stem, layer if num_layers > 1 else "", role)))
        mixes.append(Mix(name, [round(float(weight), 4) for weight in weights / weights.sum()], float(gamma)))
    return mixes


def plot(mixes: list[Mix], output: str | os.PathLike) -> None:
    """Plots the mixes side by side, the top layer at the top, in a PNG file.

    Raises:
        InputError: if the mixes have different numbers of layers.
    """
    counts = sorted({len(mix.weights) for mix in mixes})
    if len(counts) > 1:
        raise InputError("mixes", "equal numbers of layers", counts)
    values = np.array([mix.weights for mix in mixes]).T[::-1]
    # A bare Figure needs no display.
    figure = Figure(figsize=(1.5 + 1.1 * len(mixes), 1.6 + 0.6 * len(values)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(mixes)), [mix.name for mix in mixes], rotation=30, ha="right")
    for label, mix in zip(axes.get_xticklabels(), mixes, strict=True):
        label.set_fontfamily(_fonts(mix.name))
    axes.set_yticks(range(len(values)), [f"layer {number}" for number in reversed(range(len(values)))])
    for (row, column), value in np.ndenumerate(values):
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black")
    figure.colorbar(image, ax=axes, label="weight after the softmax")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    stores.write(output, picture.getvalue())


def _fonts(text: str) -> list[str]:
    """Returns the default font, and those on this machine that have the characters of a text that it lacks."""
    families, missing = ["DejaVu Sans"], set(map(ord, text))
    missing -= FT2Font(font_manager.findfont(families[0])).get_charmap().keys()
    for font in font_manager.fontManager.ttflist if missing else ():
        if font.name.startswith("Last Resort"):  # comes with matplotlib: a box that names the script, for any letter
            continue
        if shown := missing & FT2Font(font.fname).get_charmap().keys():
            families.append(font.name)
            missing -= shown
    return families


def _parameters(file: h5py.File) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
    """Returns scalar parameters and gamma, by the layer's path in the file and the mix's number."""
    stored = {}

    def visit(name: str, item: h5py.HLObject) -> None:
        match = _MIX.fullmatch(name)
        if match and isinstance(item, h5py.Group):
            gamma, parameters = sorted((variable[()] for variable in item.values()), key=np.ndim)
            stored[match["layer"], int(match["number"] or 0)] = (parameters, gamma)

    file.visititems(visit)
    return stored
