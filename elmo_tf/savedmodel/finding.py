"""From what a user gives to the version's folder of a SavedModel: a folder, or the name of a published model."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import elmo_tf
from elmo_tf.errors import InputError, renamed
from elmo_tf.files.progress import ProgressLine
from elmo_tf.published import fetching, models
from elmo_tf.savedmodel import contract, conversion


def find_version(savedmodel: str | os.PathLike) -> pathlib.Path:
    """Returns the folder of a SavedModel: `savedmodel` itself, the newest version in it, or the model of that name.

    A published model becomes a SavedModel at its first use and is kept. A folder with a SavedModel comes before a model
    of the same name.

    Raises:
        InputError: if it is none of these, or the model cannot be fetched or converted.
    """
    folder = pathlib.Path(savedmodel)
    newest = _newest(folder)
    if (newest / contract.GRAPH_FILE).is_file():
        return newest
    if models.is_name(savedmodel):
        with renamed(name="savedmodel"):
            return converted(models.find(str(savedmodel)))
    names = "" if folder.exists() or len(folder.parts) != 1 else f", or {models.expected_names()}"
    similar = models.suggested(savedmodel) if names else ""
    raise InputError("savedmodel", f"a folder with {contract.GRAPH_FILE}{names}", f"none: {newest}{similar}")


def converted(model: models.PublishedModel) -> pathlib.Path:
    """Returns the version's folder of a published model, which is converted first if it has not been.

    A process of its own converts: this one may have to start worker processes before it loads TensorFlow, and gets the
    memory back. Another process that converts the same model is waited for.

    Raises:
        InputError: if the model cannot be fetched, is damaged, or its folder cannot be written.
        OSError: if the conversion fails for another reason.
    """
    output = savedmodel_of(model)
    if not is_converted(model):
        files = fetching.files(model)
        with fetching.own_folder(model):
            if not is_converted(model):
                # Of conversions that were killed: there is no other one now.
                for unfinished in output.glob(f"*{contract.UNNUMBERED}*"):
                    shutil.rmtree(unfinished, ignore_errors=True)
                _convert(model, files, output)
    return _newest(output)


@contextlib.contextmanager
def repairable(version: pathlib.Path) -> Iterator[None]:
    """Has an `InputError` about a published model's SavedModel say which folder to delete.

    Args:
        version: the folder that `find_version` returned.
    """
    try:
        yield
    except InputError as error:
        folder = version.parent
        if folder not in map(savedmodel_of, models.MODELS):
            raise
        found = f"{error.found}; delete {folder} and the next use converts it again"
        raise InputError(error.parameter, error.expected, found) from None


def is_converted(model: models.PublishedModel) -> bool:
    """Whether a SavedModel of the model is on this machine."""
    return (_newest(savedmodel_of(model)) / contract.GRAPH_FILE).is_file()


def savedmodel_of(model: models.PublishedModel) -> pathlib.Path:
    """Returns the folder of what this release of the package can load, converted from the weights in the table."""
    weights = f"-{model.sha256[:12]}" if model.sha256 else ""
    return fetching.folder_of(model) / f"savedmodel-{contract.REVISION}{weights}"


def _convert(model: models.PublishedModel, files: fetching.Files, output: pathlib.Path) -> None:
    # Where no log is shown, half a minute of silence would look like a program that hangs.
    ProgressLine().leave(f"converting the model {model.name} to a SavedModel, once: {output}")
    # The process must find this package, wherever the present one has it from.
    package = pathlib.Path(elmo_tf.__file__).parents[1]
    paths = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    settings = {"CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment = os.environ | settings | {"PYTHONPATH": paths}
    command = [sys.executable, "-P", "-m", conversion.__name__, model.name, *map(str, files), str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    if done.returncode == conversion.INPUT_ERROR:
        error = InputError.from_message(lines[-1])
        raise fetching.damaged(model, error) if error.parameter in ("options", "weights") else error
    raise OSError(f"cannot convert the model {model.name}: {lines[-1]}")


def _newest(folder: pathlib.Path) -> pathlib.Path:
    """Returns `folder` if it has a graph, else the newest version's folder in it, else `folder`."""
    if (folder / contract.GRAPH_FILE).is_file() or not folder.is_dir():
        return folder
    versions = [inner for inner in folder.iterdir() if inner.name.isdecimal()]
    return max(versions, key=lambda inner: int(inner.name), default=folder)
