"""`elmo-tf` on a machine with three GPUs, as far as `--gpus` and a cluster can see; they are logical CPUs."""

import sys

import tensorflow as tf

from elmo_tf import cli
from tests.training import local_cluster

_GPUS = [tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(3)]


def pretend() -> None:
    """Has TensorFlow see the GPUs, and computes on as many CPUs as there are visible ones."""
    real = tf.config.list_physical_devices
    tf.config.list_physical_devices = lambda kind=None: _GPUS if kind == "GPU" else real(kind)
    real_logical = tf.config.list_logical_devices
    tf.config.set_visible_devices = lambda devices, _kind: local_cluster.use_cpus(len(devices))
    tf.config.list_logical_devices = lambda kind=None: real_logical("CPU" if kind == "GPU" else kind)


if __name__ == "__main__":
    pretend()
    sys.exit(cli.main())
