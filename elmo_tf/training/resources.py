"""What a training needs from the machine: memory, disk space and GPUs; and the words when something is missing."""

import errno
import logging
import os
import pathlib
import shutil

import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.errors import InputError

# Either exists where NVIDIA's driver is installed and a GPU is present.
_NVIDIA = (pathlib.Path("/proc/driver/nvidia/version"), pathlib.Path("/dev/nvidia0"))
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BYTES_PER_WEIGHT = 4

_log = logging.getLogger("elmo_tf")


def check_memory(config: Config, vocab_size: int | None) -> None:
    """Raises `InputError`, naming `config`, if the weights alone are larger than the memory of this machine."""
    count = config.model.num_parameters(vocab_size)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if count * _BYTES_PER_WEIGHT > memory:
        found = f"one of {count:,} parameters, which take {count * _BYTES_PER_WEIGHT / 1e9:,.1f} GB"
        raise InputError("config", f"a model that fits into the {memory / 1e9:,.1f} GB of memory here", found)


def warn_of_little_space(folder: pathlib.Path, checkpoint_bytes: int, more: int, kept: int) -> None:
    """Warns if the checkpoints to come do not fit on the disk of `folder`.

    Args:
        folder: where they are written.
        checkpoint_bytes: size of one.
        more: how many will be there at a time beside those that are there now.
        kept: how many are kept, for the message.
    """
    free = shutil.disk_usage(folder).free
    if more * checkpoint_bytes > free:
        _log.warning(
            "warning: a checkpoint takes %s MB; %d more (%d are kept, and one more is there while it is written) take "
            "%s MB, but %s MB are free in %s",
            *(megabytes(checkpoint_bytes), more, kept, megabytes(more * checkpoint_bytes), megabytes(free), folder),
        )


def explained(error: OSError, folder: pathlib.Path, checkpoint_bytes: int) -> OSError:
    """Returns the error of a checkpoint that cannot be written; a full disk with what is needed and what is free."""
    if error.errno not in _FULL:
        return error
    free = shutil.disk_usage(folder).free
    return OSError(
        f"the disk is full ({os.strerror(error.errno)}): a checkpoint takes {megabytes(checkpoint_bytes)} MB, "
        f"{megabytes(free)} MB are free in {folder}"
    )


def os_error(error: tf.errors.OpError) -> OSError:
    """Returns TensorFlow's error about a file as Python's, without the names of operations."""
    message = error.message.rpartition("}}")[2].partition(" [Op:")[0].strip()
    full = [number for number in _FULL if os.strerror(number) in message]
    return OSError(full[0], message) if full else OSError(message)


def megabytes(size: int) -> str:
    """Returns a number of bytes in MB, with a decimal if it is small."""
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"


def warn_of_unused_gpus() -> None:
    """Warns if the machine has an NVIDIA GPU that TensorFlow does not see, unless it is hidden on purpose."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in _HIDDEN
    if not hidden and any(path.exists() for path in _NVIDIA) and not tf.config.list_physical_devices("GPU"):
        _log.warning(
            "warning: this machine has an NVIDIA GPU, but TensorFlow does not see it and computes on the CPU; "
            "elmo-tf's extra [gpu] installs the CUDA libraries that it needs"
        )


def devices(strategy: tf.distribute.Strategy) -> str:
    """Returns the devices of this process that a strategy computes on, such as `CPU:0` or `GPU:0 (NVIDIA H200)`."""
    return ", ".join(map(_described, strategy.extended.worker_devices))


def _described(device: str) -> str:
    spec = tf.DeviceSpec.from_string(device)
    name = f"{spec.device_type}:{spec.device_index}"
    physical = tf.config.get_visible_devices(spec.device_type)
    # CPUs have no details, and several logical devices may share a physical one.
    if spec.device_type != "GPU" or spec.device_index >= len(physical):
        return name
    details = tf.config.experimental.get_device_details(physical[spec.device_index])
    return f"{name} ({details['device_name']})" if "device_name" in details else name
