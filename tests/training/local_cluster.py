"""Several workers on this machine: their `TF_CONFIG`, and logical CPUs in the place of GPUs."""

import json
import socket

import tensorflow as tf
from tensorflow.python.distribute import collective_all_reduce_strategy as collective

from elmo_tf.training import workers


def use_cpus(count: int) -> None:
    """Makes each worker use `count` logical CPUs; by default, TensorFlow uses one."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)

    def local_devices(_strategy, _resolver, worker_device):
        return tuple(f"{worker_device}/device:CPU:{number}" for number in range(count)), "CPU"

    collective.CollectiveAllReduceExtended._initialize_local_devices = local_devices


def environments(count: int) -> list[dict[str, str]]:
    """Returns `TF_CONFIG` for so many workers on free ports of this machine."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    hosts = [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    for server in servers:
        server.close()
    tasks = [{"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}} for index in range(count)]
    return [{workers.VARIABLE: json.dumps(task)} for task in tasks]
