"""Whether a model fits into memory."""

import os

from elmo_tf.config import Config
from elmo_tf.errors import InputError

_BYTES_PER_WEIGHT = 4


def check_memory(config: Config, vocab_size: int | None, source: str = "config") -> None:
    """Raises `InputError`, naming `source`, if the weights alone are larger than this machine's memory."""
    count = config.model.num_parameters(vocab_size)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if count * _BYTES_PER_WEIGHT > memory:
        found = f"one of {count:,} parameters, which take {count * _BYTES_PER_WEIGHT / 1e9:,.1f} GB"
        raise InputError(source, f"a model that fits into the {memory / 1e9:,.1f} GB of memory here", found)


def megabytes(size: int) -> str:
    """Returns a number of bytes in MB, with one decimal below 10."""
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"
