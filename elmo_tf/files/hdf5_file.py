"""HDF5 files from untrusted sources: nothing in one makes the HDF5 library read another file.

A dataset can keep its data in external storage or be a view of other files, and a link can lead to another file: a
file of weights could then make any file of this machine part of a model.
"""

import contextlib
import os
import zipfile
from collections.abc import Iterator

import h5py

from elmo_tf.errors import InputError, damage_reported
from elmo_tf.files import intact

_KERAS_WEIGHTS = "model.weights.h5"


@contextlib.contextmanager
def open_file(path: str | os.PathLike) -> Iterator[h5py.File]:
    """Yields a file for reading; h5py's exceptions in the block are reported as damage.

    Raises:
        InputError: as `intact.check_regular` and `check_contained`, or if it is not a complete HDF5 file.
    """
    intact.check_regular(path)
    with damage_reported("a complete HDF5 file", path), h5py.File(path) as file:
        check_contained(file, path)
        yield file


@contextlib.contextmanager
def open_keras_weights(path: str | os.PathLike) -> Iterator[h5py.File]:
    """Yields the weights in a `.keras` file, a zip archive, for reading; raises `InputError` as `check_contained`."""
    with zipfile.ZipFile(path) as archive, archive.open(_KERAS_WEIGHTS) as packed, h5py.File(packed, "r") as file:
        check_contained(file, path)
        yield file


def check_contained(file: h5py.File, path: str | os.PathLike) -> None:
    """Raises `InputError`, naming `path`, if the file has a link or a dataset whose data are not in it."""

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Group):
            for key in item:
                if not isinstance(item.get(key, getlink=True), h5py.HardLink):
                    raise InputError(str(path), f"{_joined(name, key)} is a link; links are not followed")
        elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            raise InputError(str(path), f"the data of {name} are not in this file; other files are not read")

    visit("", file)
    file.visititems(visit)  # each object once, by hard links


def _joined(group: str, key: str) -> str:
    return f"{group}/{key}" if group else key
