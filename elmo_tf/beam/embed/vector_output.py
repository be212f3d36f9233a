"""The output of vectors: TFRecord shards, one per chunk, one HDF5 file, or one matrix.

The HDF5 library lets only one process write, and a kill may leave its file unreadable. So it writes only the frame: all
datasets, whose sizes follow from the text, with space for their values. Workers then write the values as bytes, and
after a kill the same bytes again.
"""

import contextlib
import json
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import h5py
import numpy as np

from elmo_tf.beam.embed import text_chunks
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import filesystems
from elmo_tf.embedder import Words
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.records import record_folder, wire
from elmo_tf.savedmodel import vector_files

_FRAME = "frame"  # the phase's name in the journal
_PLACE = np.dtype(np.int64)  # of a value in the file of places
_META_BYTES = 1 << 14  # size of the blocks of metadata
_REASON = re.compile(r"error message = '([^']+)'")  # the operating system's, in an error of HDF5
_MOST_INFO = 60_000  # bytes of an attribute; the limit of HDF5 is 64 kB


class Layout(NamedTuple):
    """Shape and type of the vectors of a line."""

    token_shape: tuple[int, ...]  # (layers, dim) or (dim,)
    dtype: str  # float32 or float16
    pool: str | None = None  # one of embedder.POOLS if a line has the vectors of one token

    def shape(self, num_tokens: int) -> tuple[int, ...]:
        """Returns the shape of the vectors of a line."""
        return self.token_shape if self.pool else (*self.token_shape[:-1], num_tokens, self.token_shape[-1])

    def size(self, num_lines: int, num_tokens: int) -> int:
        """Returns the bytes of the vectors of some lines."""
        count = num_lines if self.pool else num_tokens
        return count * int(np.prod(self.token_shape)) * np.dtype(self.dtype).itemsize


class ChunkVectors(NamedTuple):
    """The lines of a chunk, and their vectors."""

    identifiers: list[bytes]  # of each line; empty ones if there are none
    lines: list[Words]
    vectors: list[np.ndarray]  # of the layout's shape and type


class Shards(NamedTuple):
    """TFRecord files in a folder."""

    folder: str
    num_shards: int

    def write(self, chunk: text_chunks.Chunk, found: ChunkVectors) -> dict[str, int]:
        """Writes the vectors of a chunk; returns the sizes of its files, by path."""
        path = filesystems.join(self.folder, record_folder.shard_name(chunk.number, self.num_shards))
        size = 0
        with filesystems.create(path) as file:
            for number, (name, words, values) in enumerate(zip(*found, strict=True), chunk.first_line):
                size += file.write(wire.frame(wire.encode_vectors(number, words, values, name)))
        return {path: size}


class Matrix(NamedTuple):
    """One matrix with a row per line, and a text file with a name per row. Chunks wait in the journal."""

    journal: Journal

    def write(self, chunk: text_chunks.Chunk, found: ChunkVectors) -> dict[str, int]:
        """Writes the vectors of a chunk; returns the sizes of its files, by path."""
        content = b"".join([values.tobytes() for values in found.vectors])
        filesystems.write(self._path(chunk.number), content)
        return {self._path(chunk.number): len(content)}

    def finish(self, names: Iterable[list[bytes]], num_lines: int, num_chunks: int, layout: Layout) -> None:
        """Writes the matrix and the names, which are given some at a time."""
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(layout.dtype)), "fortran_order": False}
        with filesystems.create(filesystems.join(self.journal.folder, vector_files.MATRIX_FILE)) as file:
            np.lib.format.write_array_header_1_0(file, header | {"shape": (num_lines, *layout.token_shape)})
            for number in range(num_chunks):
                file.write(filesystems.read(self._path(number)))
        with filesystems.create(filesystems.join(self.journal.folder, vector_files.IDS_FILE)) as file:
            for some in names:
                file.write(b"".join([name + b"\n" for name in some]))

    def _path(self, number: int) -> str:
        return self.journal.path(f"rows-{number:05d}.bin")


class Hdf5(NamedTuple):
    """One file, in the journal of a local folder until it is finished."""

    journal: Journal

    @property
    def path(self) -> str:
        """The path of the unfinished file."""
        return self.journal.path("vectors.hdf5")

    @property
    def _places(self) -> str:
        return self.journal.path("places")

    def is_framed(self) -> bool:
        """Whether the frame is complete; if not, everything written earlier is useless."""
        return self.journal.result(_FRAME, 0, Result) is not None

    def make_frame(self, lines: Iterable[tuple[list[bytes], list[int]]], layout: Layout, info: dict[str, Any]) -> None:
        """Makes a file with a dataset for each line, without values, and with `info` as its attribute.

        `lines` yields the names and token counts of consecutive lines, any number of lines at a time.

        Raises:
            InputError: if a name cannot be a dataset's, or is not unique.
            filesystems.WriteError: if the disk is full, for example.
        """
        text = json.dumps(info)
        if len(text) > _MOST_INFO:
            text = json.dumps(info | {"inputs": None})
        try:
            with _new_file(self.path) as file, filesystems.create(self._places) as places:
                file.attrs[vector_files.INFO_ATTRIBUTE] = text
                first_line = 0
                for names, lengths in lines:
                    places.write(_add_datasets(file, names, lengths, layout, first_line).tobytes())
                    first_line += len(names)
            staging.sync(self.path)
        except (OSError, RuntimeError) as error:
            if isinstance(error, filesystems.WriteError):
                raise
            reason = _REASON.search(str(error))
            raise filesystems.WriteError(f"cannot write {self.path}: {reason[1] if reason else error}") from None
        files = {path: os.path.getsize(path) for path in (self.path, self._places)}
        self.journal.done(_FRAME, 0, Result(files=files))

    def write(self, chunk: text_chunks.Chunk, found: ChunkVectors) -> dict[str, int]:
        """Writes the vectors of a chunk to their places; returns the size of the file, by its path."""
        begin, end = (_PLACE.itemsize * number for number in (chunk.first_line, chunk.first_line + chunk.lines))
        places = np.frombuffer(filesystems.read_range(self._places, begin, end), _PLACE).tolist()
        try:
            with open(self.path, "r+b", opener=staging.no_link) as file:
                for place, values in zip(places, found.vectors, strict=True):
                    file.seek(place)
                    file.write(values.tobytes())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise filesystems.WriteError(f"cannot write {self.path}: {error.strerror}") from error
        return {self.path: os.path.getsize(self.path)}

    def finish(self, output: str) -> None:
        """Moves the file to `output`.

        Raises:
            filesystems.WriteError: if a file has appeared there meanwhile.
        """
        if os.path.lexists(output):
            raise filesystems.WriteError(f"cannot move {self.path} to {output}: it already exists")
        os.rename(self.path, output)
        staging.sync(os.path.dirname(os.path.abspath(output)))


Output = Shards | Matrix | Hdf5


@contextlib.contextmanager
def _new_file(path: str):
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_meta_block_size(_META_BYTES)
    # Unlinked first, so that a link in its place is not followed.
    pathlib.Path(path).unlink(missing_ok=True)
    with h5py.File(h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_EXCL, fapl=access)) as file:
        yield file


def _in_line(name: bytes, line: int) -> str:
    return f"{name.decode(errors='replace')} in line {line:,} (counted from 0)"


def _add_datasets(
    file: h5py.File, names: list[bytes], lengths: list[int], layout: Layout, first_line: int
) -> np.ndarray:
    """Adds datasets; returns where each one's values begin in the file, int64; 0 for those without values."""
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    # Early allocation gives values a place at once.
    create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    # With time stamps, no two files would be the same.
    create.set_obj_track_times(False)
    kind = h5py.h5t.py_create(np.dtype(layout.dtype).newbyteorder("<"))
    places = np.zeros(len(lengths), _PLACE)
    for number, (name, length) in enumerate(zip(names, lengths, strict=True)):
        space = h5py.h5s.create_simple(layout.shape(length))
        if name == b"." or not {*b"/\0"}.isdisjoint(name):
            expected = "identifiers that HDF5 takes as names, without / (the formats tfrecord and npy take any)"
            raise InputError("input", expected, _in_line(name, first_line + number))
        try:
            dataset = h5py.h5d.create(file.id, name, kind, space, create)
        except ValueError:
            expected = "a different identifier for each line"
            raise InputError("input", expected, "a second " + _in_line(name, first_line + number)) from None
        places[number] = dataset.get_offset() or 0
    return places
