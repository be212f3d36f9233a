"""`elmo-tf` as a process of its own, on a micro network, to be killed; several of them as workers."""

import functools
import json
import operator
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from elmo_tf import config as config_lib
from elmo_tf.training import cluster
from tests.helpers import MICRO_CONFIG, ROOT


def arguments(records, workdir, **train) -> list[str]:
    """Returns the command that trains the micro network, with changes to its recipe."""
    values = config_lib.to_dict(MICRO_CONFIG)
    values["train"] |= train
    settings = []
    for key in sorted(config_lib.keys()):
        value = functools.reduce(operator.getitem, key.split("."), values)
        settings += ["--set", f"{key}={json.dumps(value)}"]
    return ["train", "--data", str(records.path), "--workdir", str(workdir), "--preset", "tiny", *settings]


def start(command: list[str], log: pathlib.Path, module: str = "elmo_tf.cli", **environment: str) -> subprocess.Popen:
    """Starts `elmo-tf`, or another module, with that command; stderr goes to the end of the file `log`."""
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", module, *command],
            env=os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"} | environment,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )


def environments(count: int) -> list[dict[str, str]]:
    """Returns `TF_CONFIG` for so many workers on free ports of this machine."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    hosts = [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    for server in servers:
        server.close()
    tasks = [{"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}} for index in range(count)]
    return [{cluster.VARIABLE: json.dumps(task)} for task in tasks]


def wait_until(condition: Callable[[], bool], processes: list[subprocess.Popen], logs: list[pathlib.Path]) -> None:
    """Waits until `condition()` holds while all of the processes, whose logs these are, still run."""
    deadline = time.monotonic() + 200
    while not condition():
        running = [process.poll() for process in processes] == [None] * len(processes)
        assert running and time.monotonic() < deadline, [log.read_text() for log in logs]
        time.sleep(0.0005)


def losses(workdir: pathlib.Path) -> list[dict]:
    """Returns the steps of `metrics.jsonl`; none if it is not there yet."""
    path = workdir / "metrics.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines() if b"forward_loss" in line]


def wait_for_line(line: str, log: pathlib.Path, process: subprocess.Popen) -> None:
    """Waits until a running process has written `line` to its log."""
    wait_until(lambda: line in log.read_text(), [process], [log])
