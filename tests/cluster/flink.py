"""A Flink cluster on this machine: a JobManager, and TaskManagers each with a worker pool of its own.

All of it listens on loopback addresses only. Each pair of TaskManager and pool stands for a machine: the TaskManager
knows the pool as `worker-pool`, an address of its own.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

from tests.cluster import engine as engine_lib

_POOL = "worker-pool"
_START_SECONDS = 240
_RESTARTS = 10  # after 1, 2, 4, 8, 16, 32, 60, 60, 60 and 60 s: together longer than _START_SECONDS
_HEAP_MB = 384
_OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.util", "java.net", "java.io", "java.nio", "java.util.concurrent")
]
_SMALL = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k"]
_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
# What a shell does in a namespace of its own before it becomes the process: $0 is the folder, $@ the command.
_HIDE = 'mount -t tmpfs none "$0" && exec "$@"'
_WITHOUT_PACKAGE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "elmo_tf":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Missing())
"""
_LOG4J = """
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1} %m%n
"""


class Machine:
    def __init__(self, cluster: "Cluster", number: int):
        self._cluster, self._number = cluster, number
        self._address = f"127.0.1.{number + 1}"
        self.identifier = ""  # of the TaskManager, for Flink
        self._processes: list[subprocess.Popen] = []

    def start(self, hidden: pathlib.Path | None = None, lacks_package: bool = False) -> None:
        """Starts both processes; workers see an empty folder in the place of `hidden`."""
        folder = self._cluster.folder / f"machine-{self._number}"
        folder.mkdir(exist_ok=True)
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n{self._address} {_POOL}\n")
        self.identifier = f"machine-{self._number}-{time.monotonic_ns()}"
        settings = {"taskmanager.host": "127.0.0.1", "taskmanager.resource-id": self.identifier, "io.tmp.dirs": folder}
        pool = [sys.executable, "-m", "tests.cluster.worker_pool", f"{self._address}:{self._cluster.pool_port}"]
        if hidden:
            pool = ["unshare", "--mount", "--map-root-user", "sh", "-c", _HIDE, str(hidden), *pool]
        (folder / "sitecustomize.py").write_text(_WITHOUT_PACKAGE)
        paths = [str(folder)] if lacks_package else []
        java = [f"-Djdk.net.hosts.file={hosts}", "-XX:MaxDirectMemorySize=256m"]
        self._processes = [
            self._cluster.start(pool, f"pool-{self._number}", paths),
            self._cluster.start_java(_TASK_MANAGER, java, settings, f"taskmanager-{self._number}"),
        ]

    def kill(self) -> None:
        """Kills both processes and all that they started, as a machine that fails."""
        for process in self._processes:
            self._cluster.kill(process)
        self._processes = []

    def restart(self, **settings: Any) -> None:
        self.kill()
        self.start(**settings)


class Cluster:
    def __init__(self, engine: engine_lib.Engine, folder: pathlib.Path, restarts: int):
        self.engine, self.folder, self._restarts = engine, folder, restarts
        self.rest_port, self._rpc, self.pool_port = free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{self.rest_port}"  # where the JobManager answers
        self._processes: list[subprocess.Popen] = []
        self.machines = [Machine(self, number) for number in range(2)]

    @property
    def options(self) -> list[str]:
        """Beam's options for this cluster, with a worker process for the one slot of each machine."""
        return [
            "--runner=FlinkRunner",
            f"--flink_master={self.address}",
            "--flink_submit_uber_jar",
            f"--flink_job_server_jar={self.engine.job_server}",
            "--environment_type=EXTERNAL",
            f"--environment_config={_POOL}:{self.pool_port}",
            "--sdk_worker_parallelism=1",
            f"--parallelism={len(self.machines)}",
        ]

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)

    def jobs(self) -> list[dict[str, Any]]:
        """Returns all jobs, the newest first."""
        return sorted(self.ask("/jobs/overview")["jobs"], key=lambda job: -job["start-time"])

    def start(self, command: list[str], name: str, paths: Sequence[str] = ()) -> subprocess.Popen:
        """Starts a process of the cluster, which ends with this one. It looks for Python modules in `paths` first."""
        environment = {
            **os.environ,
            "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join([*paths, str(engine_lib.ROOT)]),
            "TMPDIR": str(self.folder),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=engine_lib.ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - this program has no other threads when it starts processes
            )
        self._processes.append(process)
        return process

    def start_java(self, main: str, java: list[str], settings: dict[str, Any], name: str) -> subprocess.Popen:
        """Starts a process of Flink with settings besides those of the cluster."""
        folder = self.folder / f"{name}-conf"
        folder.mkdir(exist_ok=True)
        lines = [f"{key}: {value}\n" for key, value in {**self._settings(), **settings}.items()]
        (folder / "config.yaml").write_text("".join(lines))
        (folder / "log4j.properties").write_text(_LOG4J)
        logging = f"-Dlog4j2.configurationFile={folder / 'log4j.properties'}"
        command = ["java", f"-Xmx{_HEAP_MB}m", *_SMALL, *_OPENED, logging, *java, "-cp", f"{self.engine.libraries}/*"]
        return self.start([*command, main, "--configDir", str(folder)], name)

    def wait_for_machines(self) -> None:
        """Returns once the JobManager knows all TaskManagers and no others. Raises RuntimeError if that takes long."""
        for _ in range(_START_SECONDS):
            with contextlib.suppress(OSError):
                identifiers = {manager["id"] for manager in self.ask("/taskmanagers")["taskmanagers"]}
                if identifiers == {machine.identifier for machine in self.machines}:
                    return
            if any(process.poll() is not None for process in self._processes):
                raise RuntimeError(f"a process of the cluster ended; see the logs in {self.folder}")
            time.sleep(1)
        raise RuntimeError(f"the cluster does not start; see the logs in {self.folder}")

    def kill(self, process: subprocess.Popen) -> None:
        """Kills one of the cluster's processes, and all others of its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._processes.remove(process)

    def stop(self) -> None:
        for process in list(self._processes):
            self.kill(process)

    def _settings(self) -> dict[str, Any]:
        return {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": self._rpc,
            "jobmanager.bind-host": "127.0.0.1",
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": 1,
            # In the place of what Flink's start scripts calculate.
            "taskmanager.cpu.cores": 1.0,
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "192m",
            "taskmanager.memory.jvm-overhead.max": "192m",
            "taskmanager.memory.task.heap.size": "192m",
            "taskmanager.memory.task.off-heap.size": "0m",
            "taskmanager.memory.network.min": "64m",
            "taskmanager.memory.network.max": "64m",
            "taskmanager.memory.managed.size": "64m",
            # Until a machine's heartbeat is missed, Flink sends tasks to it, and each restart of the job fails.
            "heartbeat.interval": 2000,
            "heartbeat.timeout": 20000,
            "restart-strategy.type": "exponential-delay" if self._restarts else "none",
            "restart-strategy.exponential-delay.backoff-multiplier": 2.0,
            "restart-strategy.exponential-delay.attempts-before-reset-backoff": self._restarts,
            "slot.request.timeout": 40000,
        }


@contextlib.contextmanager
def running(restarts: int = _RESTARTS) -> Iterator[Cluster]:
    """Runs a cluster that restarts failed jobs `restarts` times; its logs are kept if the block raises an exception."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="elmo_tf-flink-"))
    cluster = Cluster(engine_lib.engine(), folder, restarts)
    try:
        cluster.start_java(_JOB_MANAGER, [], {"rest.port": cluster.rest_port}, "jobmanager")
        for machine in cluster.machines:
            machine.start()
        cluster.wait_for_machines()
        yield cluster
    except BaseException:
        cluster.stop()
        raise
    cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)


def end_with_parent() -> None:
    """Lets the kernel kill this process when the one that started it ends in any way."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]
