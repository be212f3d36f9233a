"""The devices that a training uses."""

import logging
import os
import pathlib

import tensorflow as tf

# Either exists where NVIDIA's driver is installed and a GPU is present.
_NVIDIA = (pathlib.Path("/proc/driver/nvidia/version"), pathlib.Path("/dev/nvidia0"))
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs

_log = logging.getLogger("elmo_tf")


def all_gpus() -> tf.distribute.Strategy:
    """Returns the strategy with a replica on each visible GPU, or one on the CPU."""
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    return tf.distribute.MirroredStrategy(gpus or ["CPU:0"])


def warn_of_unused_gpus() -> None:
    """Warns if the machine has an NVIDIA GPU that TensorFlow does not see, unless it is hidden on purpose."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in _HIDDEN
    if not hidden and any(path.exists() for path in _NVIDIA) and not tf.config.list_physical_devices("GPU"):
        _log.warning(
            "warning: this machine has an NVIDIA GPU, but TensorFlow does not see it and computes on the CPU; "
            "elmo-tf's extra [gpu] installs the CUDA libraries that it needs"
        )


def names(strategy: tf.distribute.Strategy) -> str:
    """Returns the names of the devices of this process in a strategy, such as `CPU:0`."""
    specs = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
    return ", ".join(f"{spec.device_type}:{spec.device_index}" for spec in specs)
