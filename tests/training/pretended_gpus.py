"""`elmo-tf` on a machine with three GPUs, as far as `--gpus` and a cluster can see; they are logical CPUs."""

import sys

import tensorflow as tf
from tensorflow.python.distribute import collective_all_reduce_strategy as collective

from elmo_tf import cli

_GPUS = [tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(3)]


def use_cpus(count: int) -> None:
    """Makes each worker use `count` logical CPUs; by default, TensorFlow uses one."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)

    def local_devices(_strategy, _resolver, worker_device):
        return tuple(f"{worker_device}/device:CPU:{number}" for number in range(count)), "CPU"

    collective.CollectiveAllReduceExtended._initialize_local_devices = local_devices


def pretend() -> None:
    """Has TensorFlow see the GPUs, and computes on as many CPUs as there are visible ones."""
    real = tf.config.list_physical_devices
    tf.config.list_physical_devices = lambda kind=None: _GPUS if kind == "GPU" else real(kind)
    real_logical = tf.config.list_logical_devices
    tf.config.set_visible_devices = lambda devices, _kind: use_cpus(len(devices))
    tf.config.list_logical_devices = lambda kind=None: real_logical("CPU" if kind == "GPU" else kind)


if __name__ == "__main__":
    pretend()
    sys.exit(cli.main())
