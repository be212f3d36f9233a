"""Files for the readers' tests."""

import gzip
import lzma
import pathlib


def write(folder: pathlib.Path, text: str, name: str = "file") -> pathlib.Path:
    """Writes a text file, compressed as its name says; returns its path."""
    path = folder / name
    opener = {"xz": lzma.open, "gz": gzip.open}.get(name.rpartition(".")[2], open)
    with opener(path, "wb") as file:
        file.write(text.encode())
    return path
