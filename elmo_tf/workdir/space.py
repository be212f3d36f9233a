"""Checks that a model fits into memory and its checkpoints on the disk, and messages for when they do not."""

import errno
import os
import pathlib
import shutil
from typing import TYPE_CHECKING

from elmo_tf.config import Config
from elmo_tf.errors import InputError

if TYPE_CHECKING:
    import tensorflow as tf

_FULL = (errno.ENOSPC, errno.EDQUOT)
_BYTES_PER_WEIGHT = 4


def check_memory(config: Config, vocab_size: int | None, source: str = "config") -> None:
    """Raises `InputError`, naming `source`, if the weights alone are larger than this machine's memory."""
    count = config.model.num_parameters(vocab_size)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if count * _BYTES_PER_WEIGHT > memory:
        found = f"one of {count:,} parameters, which take {count * _BYTES_PER_WEIGHT / 1e9:,.1f} GB"
        raise InputError(source, f"a model that fits into the {memory / 1e9:,.1f} GB of memory here", found)


def explained(error: OSError, folder: pathlib.Path, checkpoint_bytes: int) -> OSError:
    """Returns an error about writing a checkpoint; if the disk is full, with the space that is needed and free."""
    if error.errno not in _FULL:
        return error
    free = shutil.disk_usage(folder).free
    return OSError(
        f"the disk is full ({os.strerror(error.errno)}): a checkpoint takes {megabytes(checkpoint_bytes)} MB, "
        f"{megabytes(free)} MB are free in {folder}"
    )


def os_error(error: "tf.errors.OpError") -> OSError:
    """Converts TensorFlow's error about a file to Python's, without the names of operations."""
    message = error.message.rpartition("}}")[2].partition(" [Op:")[0].strip()
    full = [number for number in _FULL if os.strerror(number) in message]
    return OSError(full[0], message) if full else OSError(message)


def megabytes(size: int) -> str:
    """Returns a number of bytes in MB, with one decimal below 10."""
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"
