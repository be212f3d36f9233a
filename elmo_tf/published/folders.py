"""Folders of published files as their publishers name them."""

import os
import pathlib

from elmo_tf.errors import InputError
from elmo_tf.published.models import OPTIONS_FILE, WEIGHTS_FILE

_NLPL_WEIGHTS = "model.hdf5"
_MANY_LANGS = "token_embedder.pkl"


def files_in(folder: str | os.PathLike) -> tuple[pathlib.Path, pathlib.Path] | None:
    """Returns the options and the weights in a folder, or None if it has no options.

    `options.json` and `weights.hdf5`; with NLPL `model.hdf5`; with AllenNLP `elmo_..._options.json` and
    `elmo_..._weights.hdf5`, or any other end.

    Raises:
        InputError: if it has the files of several models, or those of another kind of model.
    """
    folder = pathlib.Path(folder)
    if folder.suffix == ".zip" and folder.is_file():
        raise InputError(str(folder), f"an archive: unpack it (unzip {folder} -d {folder.stem}) and give the folder")
    if (folder / _MANY_LANGS).is_file():
        raise InputError(
            str(folder), "a model of ELMoForManyLangs: another network, in PyTorch's files, that cannot be read"
        )
    options = [folder / OPTIONS_FILE] if (folder / OPTIONS_FILE).is_file() else sorted(folder.glob("*_options.json"))
    if not options:
        return None
    known = [path for path in (folder / WEIGHTS_FILE, folder / _NLPL_WEIGHTS) if path.is_file()]
    weights = known[:1] or sorted(folder.glob("*_weights*.hdf5"))
    if len(options) > 1 or len(weights) > 1:
        names = ", ".join(path.name for path in [*options, *weights])
        raise InputError(str(folder), f"the files of several models ({names}): give the two files of one model")
    return options[0], weights[0] if weights else folder / WEIGHTS_FILE
