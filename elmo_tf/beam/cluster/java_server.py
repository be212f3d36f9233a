"""Beam's job server for Flink, a Java program that serves one command, in a process group of its own.

Beam itself starts one for every pipeline, which takes many seconds, in the terminal's process group, where Ctrl-C ends
it before it can cancel the job.
"""

import contextlib
import ctypes
import functools
import pathlib
import signal
import subprocess
import tempfile
from collections.abc import Iterator

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability import flink_runner

from elmo_tf.errors import InputError

_START_SECONDS = 180
_POLL_SECONDS = 0.2
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


@contextlib.contextmanager
def running(options: PipelineOptions) -> Iterator[str]:
    """Yields the address of a job server, which runs while the block runs.

    Raises:
        InputError: if the jar can neither be found nor downloaded.
        ChildProcessError: if the server does not start.
    """
    server = flink_runner.FlinkJarJobServer(options)
    with tempfile.TemporaryDirectory(prefix="elmo-tf-job-server-") as folder:
        server._local_temp_root = folder
        try:
            command, endpoint = server.subprocess_cmd_and_endpoint()
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError("flink_job_server_jar", "a jar, or a network to download it from", reason) from None
        log = pathlib.Path(folder, "log")
        with log.open("wb") as out:
            process = start([str(part) for part in command], out)
        try:
            _wait(endpoint, process, log)
            yield endpoint
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


def start(command: list[str], out) -> subprocess.Popen:
    """Starts a program that Ctrl-C does not reach and that, on Linux, ends with this process however that ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # One system call, which takes no lock that a thread may hold.
            preexec_fn=prctl and functools.partial(prctl, _PARENT_DEATH_SIGNAL, signal.SIGTERM),  # noqa: PLW1509
        )
    except OSError as error:
        raise ChildProcessError(f"cannot start the job server: {error.strerror}: {command[0]}") from None


def _wait(endpoint: str, process: subprocess.Popen, log: pathlib.Path) -> None:
    """Waits until the server answers; raises ChildProcessError if it ends or takes too long."""
    with grpc.insecure_channel(endpoint) as channel:
        ready = grpc.channel_ready_future(channel)
        for _ in range(round(_START_SECONDS / _POLL_SECONDS)):
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(_POLL_SECONDS)
                return
            if process.poll() is not None:
                lines = log.read_text(errors="replace").split("\n")
                errors = [line.strip() for line in lines if "rror" in line or "xception" in line]
                raise ChildProcessError(f"the job server ended: {errors[0] if errors else 'no reason given'}")
    raise ChildProcessError(f"the job server did not start within {_START_SECONDS} s")
