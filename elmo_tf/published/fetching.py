"""The files of a published model on this machine: those that come with this package, or fetched once and kept."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import h5py

from elmo_tf.errors import InputError
from elmo_tf.files import download, lock
from elmo_tf.published.models import OPTIONS_FILE, WEIGHTS_FILE, PublishedModel
from elmo_tf.published.options import read_options

HOME_VARIABLE = "ELMO_TF_HOME"
# The model in the box has a folder of its name beside this file.
_BOX = pathlib.Path(__file__).parent


class Files(NamedTuple):
    """The two files of a model."""

    options: pathlib.Path
    weights: pathlib.Path


def home() -> pathlib.Path:
    """Returns the folder of all models: `$ELMO_TF_HOME`, or `elmo_tf` in the user's cache folder."""
    if given := os.environ.get(HOME_VARIABLE):
        return pathlib.Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return pathlib.Path(cache).expanduser() / "elmo_tf"


def folder_of(model: PublishedModel) -> pathlib.Path:
    """Returns the folder in which a model, and what is made of it, is kept."""
    return home() / model.name


def are_here(model: PublishedModel) -> bool:
    """Whether the files of a model are on this machine."""
    return all(path.is_file() for path in _paths(model))


def files(model: PublishedModel) -> Files:
    """Returns the files of a model, and fetches them first if they are not here.

    A file is fetched in `files.download`'s way: an interrupted one resumes. A wrong file is not kept. Another process
    that fetches the same model is waited for. Files that are here already, put there by hand for example, are compared
    with the table as well.

    Raises:
        InputError: if a file cannot be fetched or written, is damaged, or is another than the table says.
    """
    if not are_here(model):
        if model.is_in_the_box:
            found = f"no {WEIGHTS_FILE} in {_paths(model).weights.parent}: this copy of elmo_tf is incomplete"
            raise InputError("name", f"the model {model.name}, which comes with elmo_tf", found)
        with own_folder(model) as folder:
            for file, url in model.urls.items():
                if not (folder / file).exists():
                    _fetch(model, url, folder / file)
    found = _paths(model)
    try:
        download.check(found.weights, model.size, model.sha256)
    except InputError as error:
        raise damaged(model, error) from None
    return found


@contextlib.contextmanager
def own_folder(model: PublishedModel) -> Iterator[pathlib.Path]:
    """Makes the folder of a model, waits for other processes that write in it, and keeps them out during the block.

    Raises:
        InputError: if it cannot be written.
    """
    folder = folder_of(model)
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock.locked(folder, wait=True))
        except OSError as error:
            expected = "a folder that can be written; the variable names another"
            raise InputError(HOME_VARIABLE, expected, f"{error.strerror}: {folder}") from None
        yield folder


def damaged(model: PublishedModel, error: InputError) -> InputError:
    """Returns the error for files that are here and wrong. They stay: a user may have put them there."""
    where = f"delete {folder_of(model)} and the next use fetches it again"
    if model.is_in_the_box:
        where = "install elmo_tf again"
    return InputError("name", f"an intact model {model.name}: {error.expected}", f"{error.found}; {where}")


def _paths(model: PublishedModel) -> Files:
    folder = _BOX / model.name if model.is_in_the_box else folder_of(model)
    return Files(folder / OPTIONS_FILE, folder / WEIGHTS_FILE)


def _fetch(model: PublishedModel, url: str, path: pathlib.Path) -> None:
    known = (model.size, model.sha256) if path.name == WEIGHTS_FILE else (None, None)
    try:
        download.download(url, *known, path)
        _check_kind(path)
    except InputError as error:
        urls = " and ".join(model.urls.values())
        by_hand = f"{urls}, or these files put by hand into {path.parent} as {OPTIONS_FILE} and {WEIGHTS_FILE}"
        raise InputError("name", f"{error.expected} of the model {model.name} from {by_hand}", error.found) from None


def _check_kind(path: pathlib.Path) -> None:
    """Removes a file that is of another kind, such as the page of a network that asks for a login first.

    Raises:
        InputError: if it was.
    """
    try:
        if path.name == OPTIONS_FILE:
            read_options(path)
        elif not h5py.is_hdf5(path):
            raise InputError("weights", "an HDF5 file", "another file")
    except InputError as error:
        path.unlink()
        raise InputError(error.parameter, error.expected, f"{error.found} (removed)") from None
