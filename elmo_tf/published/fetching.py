"""The files of a published model on this machine: in a folder, with this package, or fetched once and kept."""

import os
import pathlib
from typing import NamedTuple

import h5py

from elmo_tf.errors import InputError
from elmo_tf.files import intact
from elmo_tf.published.models import OPTIONS_FILE, WEIGHTS_FILE, PublishedModel
from elmo_tf.published.options import read_options

HOME_VARIABLE = "ELMO_TF_HOME"
_PACKAGED = pathlib.Path(__file__).parent  # has a folder for each model that comes with this package
_NLPL_WEIGHTS = "model.hdf5"
_MANY_LANGS = "token_embedder.pkl"


class Files(NamedTuple):
    """The two files of a model."""

    options: pathlib.Path
    weights: pathlib.Path


def files_in(folder: str | os.PathLike) -> Files | None:
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
    known_weights = [path for path in (folder / WEIGHTS_FILE, folder / _NLPL_WEIGHTS) if path.is_file()]
    weights = known_weights[:1] or sorted(folder.glob("*_weights*.hdf5"))
    if len(options) > 1 or len(weights) > 1:
        names = ", ".join(path.name for path in [*options, *weights])
        raise InputError(str(folder), f"the files of several models ({names}): give the two files of one model")
    return Files(options[0], weights[0] if weights else folder / WEIGHTS_FILE)


def home() -> pathlib.Path:
    """Returns the folder of all models: `$ELMO_TF_HOME`, or `elmo_tf` in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = pathlib.Path(os.environ.get(HOME_VARIABLE) or f"{cache}/elmo_tf")
    try:
        return folder.expanduser()
    except RuntimeError:  # neither HOME nor an entry in the system's list of users, as in some containers
        raise InputError(HOME_VARIABLE, "not set, and there is no home folder; set it to a folder for models") from None


def are_here(model: PublishedModel) -> bool:
    """Whether the files of a model are on this machine."""
    return all(path.is_file() for path in _paths(model))


def files(model: PublishedModel) -> Files:
    """Returns the files of a model, and fetches them first if they are not here.

    An interrupted download resumes; a wrong file is not kept; a second process waits for the first. Files that are here
    already, put there by hand for example, are compared with the table as well.

    Raises:
        InputError: if a file cannot be fetched or written, is damaged, or differs from the table.
    """
    paths = _paths(model)
    if not are_here(model) and not model.comes_with_package:
        _fetch_missing(model, paths.weights.parent)
    try:
        intact.check(paths.weights, model.size, model.sha256)
    except InputError as error:
        # The files stay: a user may have put them there.
        remedy = f"delete {paths.weights.parent} and the next use fetches it again"
        if model.comes_with_package:
            remedy = "install elmo_tf again"
        raise InputError(model.name, f"the model is damaged: {error}; {remedy}") from None
    return paths


def _paths(model: PublishedModel) -> Files:
    folder = (_PACKAGED if model.comes_with_package else home()) / model.name
    return Files(folder / OPTIONS_FILE, folder / WEIGHTS_FILE)


def _fetch_missing(model: PublishedModel, folder: pathlib.Path) -> None:
    """Fetches the files of a model that are not in its folder, after waiting for other processes that write there."""
    from elmo_tf.files import lock  # noqa: PLC0415 - it imports filelock, which models that are here do not need

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock.locked(folder, wait=True):
            for name, url in model.urls.items():
                if not (folder / name).exists():
                    _fetch(model, url, folder / name)
    except OSError as error:
        problem = f"the folder cannot be written ({error.strerror}); {HOME_VARIABLE} names another"
        raise InputError(str(folder), problem) from None


def _fetch(model: PublishedModel, url: str, path: pathlib.Path) -> None:
    """Fetches a file, and removes it if it is not what its name says, such as a network's login page."""
    from elmo_tf.files import download  # noqa: PLC0415 - it imports Python's HTTPS, a tenth of a second

    expected = (model.size, model.sha256) if path.name == WEIGHTS_FILE else (None, None)
    try:
        download.download(url, *expected, path)
        if path.name == OPTIONS_FILE:
            read_options(path)
        elif not h5py.is_hdf5(path):
            raise InputError(str(path), "not an HDF5 file")
    except InputError as error:
        path.unlink(missing_ok=True)
        urls = " and ".join(map(download.without_credentials, model.urls.values()))
        by_hand = f"put the files of {urls} by hand into {path.parent} as {OPTIONS_FILE} and {WEIGHTS_FILE}"
        raise InputError(model.name, f"{error}; try again, or {by_hand}") from None
