"""The output of vectors: TFRecord shards, one per chunk, or one HDF5 file.

The HDF5 library lets only one process write, and a kill may leave its file unreadable. So it writes only the frame: all
datasets, whose sizes follow from the text, with space for their values. Workers then write the values as bytes, and
after a kill the same bytes again.
"""

import contextlib
import json
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np

from elmo_tf.embedder import Words
from elmo_tf.files import staging
from elmo_tf.pipelines.embed import text_chunks
from elmo_tf.pipelines.running.journal import Journal, Result
from elmo_tf.pipelines.text import filesystems
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

    def shape(self, num_tokens: int) -> tuple[int, ...]:
        """Returns the shape of the vectors of a line."""
        return (*self.token_shape[:-1], num_tokens, self.token_shape[-1])

    @property
    def token_bytes(self) -> int:
        """Size of one token's vectors."""
        return int(np.prod(self.token_shape)) * np.dtype(self.dtype).itemsize


class Shards(NamedTuple):
    """TFRecord files in a folder."""

    folder: str
    num_shards: int

    def write(self, chunk: text_chunks.Chunk, lines: Sequence[Words], found: Sequence[np.ndarray]) -> dict[str, int]:
        """Writes the vectors of a chunk; returns the sizes of its files, by path."""
        path = filesystems.join(self.folder, record_folder.shard_name(chunk.number, self.num_shards))
        size = 0
        with filesystems.create(path) as file:
            for number, (words, values) in enumerate(zip(lines, found, strict=True), chunk.first_line):
                size += file.write(wire.frame(wire.encode_vectors(number, words, values)))
        return {path: size}


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
        """Whether the frame is complete; if not, nothing that was written earlier is of use."""
        return self.journal.result(_FRAME, 0, Result) is not None

    def is_moved(self) -> bool:
        """Whether `finish` has moved the file."""
        return bool(self.journal.done_paths(_FRAME)) and not os.path.lexists(self.path)

    def make_frame(self, lengths: Iterable[np.ndarray], layout: Layout, info: dict[str, Any]) -> None:
        """Makes a file with a dataset for each line, without values, and with `info` as its attribute.

        `lengths` are the numbers of tokens of consecutive lines, any number of lines at a time.

        Raises:
            filesystems.WriteError: if the disk is full, for example.
        """
        text = json.dumps(info)
        if len(text) > _MOST_INFO:
            text = json.dumps(info | {"inputs": None})
        try:
            with _new_file(self.path) as file, filesystems.create(self._places) as places:
                file.attrs[vector_files.INFO_ATTRIBUTE] = text
                first = 0
                for block in lengths:
                    places.write(_add_datasets(file, first, block, layout).tobytes())
                    first += len(block)
            staging.sync(self.path)
        except (OSError, RuntimeError) as error:
            if isinstance(error, filesystems.WriteError):
                raise
            reason = _REASON.search(str(error))
            raise filesystems.WriteError(f"cannot write {self.path}: {reason[1] if reason else error}") from None
        files = {path: os.path.getsize(path) for path in (self.path, self._places)}
        self.journal.done(_FRAME, 0, Result(files=files))

    def write(self, chunk: text_chunks.Chunk, lines: Sequence[Words], found: Sequence[np.ndarray]) -> dict[str, int]:
        """Writes the vectors of a chunk to their places; returns the size of the file, by its path."""
        del lines  # the file holds no words
        begin, end = (_PLACE.itemsize * number for number in (chunk.first_line, chunk.first_line + chunk.lines))
        places = np.frombuffer(filesystems.read_range(self._places, begin, end), _PLACE).tolist()
        try:
            with open(self.path, "r+b", opener=staging.no_link) as file:
                for place, values in zip(places, found, strict=True):
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


@contextlib.contextmanager
def _new_file(path: str):
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_meta_block_size(_META_BYTES)
    # A link that is in its place is not followed.
    pathlib.Path(path).unlink(missing_ok=True)
    with h5py.File(h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_EXCL, fapl=access)) as file:
        yield file


def _add_datasets(file: h5py.File, first: int, lengths: np.ndarray, layout: Layout) -> np.ndarray:
    """Adds datasets; returns the place in the file of the values of each, int64; 0 for those without values."""
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    # Early: values have a place at once.
    create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    # Otherwise no two files would be the same.
    create.set_obj_track_times(False)
    kind = h5py.h5t.py_create(np.dtype(layout.dtype).newbyteorder("<"))
    places = np.zeros(len(lengths), _PLACE)
    for number, length in enumerate(lengths.tolist()):
        space = h5py.h5s.create_simple(layout.shape(length))
        dataset = h5py.h5d.create(file.id, b"%d" % (first + number), kind, space, create)
        places[number] = dataset.get_offset() or 0
    return places
