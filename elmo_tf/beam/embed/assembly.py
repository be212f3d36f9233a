"""One HDF5 file, or one matrix, from shards of vectors."""

import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import h5py
import numpy as np

from elmo_tf.beam import output_folder
from elmo_tf.beam.embed.embed_task import Layout
from elmo_tf.files import json_file, staging, stores
from elmo_tf.records import vector_files

_META_BYTES = 1 << 14  # size of the blocks of metadata
_REASON = re.compile(r"error message = '([^']+)'")  # the operating system's, in an error of HDF5


def write_matrix(folder: output_folder.Folder, shards: Mapping[str, int], layout: Layout) -> None:
    """Writes the matrix, the names of its rows and their sentences, from the shards' paths and numbers of lines."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(layout.dtype)), "fortran_order": False}
    with (
        stores.create(folder.file(vector_files.MATRIX_FILE)) as matrix,
        stores.create(folder.file(vector_files.IDS_FILE)) as ids,
        stores.create(folder.file(vector_files.SENTENCES_FILE)) as texts,
    ):
        np.lib.format.write_array_header_1_0(matrix, header | {"shape": (sum(shards.values()), *layout.token_shape)})
        for name, tokens, vectors in _records(shards):
            matrix.write(vectors.tobytes())
            ids.write(name + b"\n")
            texts.write(b" ".join(tokens) + b"\n")


def write_hdf5(folder: output_folder.Folder, shards: Mapping[str, int], output: str, info: dict[str, Any]) -> None:
    """Writes an HDF5 file that appears at `output` when it is complete, from the shards' paths and numbers of lines."""
    staged = folder.run_file("vectors.hdf5")
    try:
        # HDF5 itself prints an error for each object that it cannot write.
        if sum(stores.status(path).size for path in shards) > shutil.disk_usage(folder.path).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with h5py.File(staged, "x", meta_block_size=_META_BYTES) as file:
            file.attrs[vector_files.INFO_ATTRIBUTE] = json_file.dumps(info)
            for name, tokens, vectors in _records(shards):
                dataset = file.create_dataset(name, data=vectors)
                # HDF5's strings end at NUL.
                sentence = b" ".join(tokens).decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
                dataset.attrs[vector_files.SENTENCE_ATTRIBUTE] = sentence
        staging.sync(staged)
        if os.path.lexists(output):  # since the command began
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.rename(staged, output)
        staging.sync(os.path.dirname(os.path.abspath(output)))
    except (OSError, RuntimeError) as error:
        if isinstance(error, stores.ReadError):
            raise
        reason = _REASON.search(str(error))
        words = reason[1] if reason else getattr(error, "strerror", None) or error
        raise stores.WriteError(f"cannot write {output}: {words}") from None
    finally:
        stores.delete([staged])


def _records(shards: Mapping[str, int]) -> Iterator[tuple[bytes, list[bytes], np.ndarray]]:
    """Yields name, tokens and vectors of each line; raises `ReadError` if a shard is damaged."""
    for path, num_lines in shards.items():
        yield from map(vector_files.decode, vector_files.read_shard(path, num_lines))
