"""Runners of other machines: the job service that takes their pipelines, and jobs that end with the command.

Beam starts a job server, a Java program that takes many seconds, for every pipeline, and in the terminal's group of
processes, where Ctrl-C ends it before it can cancel the job. Here one serves a whole command, in a group of its own.
"""

import contextlib
import ctypes
import functools
import logging
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
    StandardOptions,
)
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.portability import flink_runner, job_server, spark_runner
from apache_beam.runners.runner import PipelineResult, PipelineState

from elmo_tf.errors import InputError
from elmo_tf.files.json_file import Object, Text
from elmo_tf.pipelines.cluster import flink_cluster
from elmo_tf.pipelines.text import filesystems

_ANSWER_SECONDS = 10
_START_SECONDS = 180
_CANCEL_SECONDS = 60
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl
_APPEAR_SECONDS = 5  # for a job that was being submitted
_POLL_SECONDS = 0.2
_NOTE = Object({"runner": Text(), "address": Text(), "name": Text()})
_PHASE_MARK = "-phase-"
_AFTERWARDS = "once it has ended, delete"
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_JAVA = re.compile(r"(?:^|Caused by: )(?:[\w$]+\.)+(\w+(?:Exception|Error)): ([^\n]+)", re.MULTILINE)
_log = logging.getLogger("elmo_tf")


@contextlib.contextmanager
def connected(options: PipelineOptions, unknown: Sequence[str] = ()) -> Iterator[None]:
    """Sees to it that a job service takes the pipelines of the block; changes `options` to its address.

    While the block runs, SIGTERM and SIGHUP end the job as Ctrl-C does.

    Args:
        options: Beam's.
        unknown: arguments among them that Beam's Python code does not know, which the service has to know.

    Raises:
        InputError: if there is no cluster, it has another version, or the service does not know an option.
        ChildProcessError: if the job server does not start.
    """
    if not _has_service(options):
        with _ends_as_interrupts():
            yield
        return
    with _ends_as_interrupts(), _quiet_threads(), contextlib.ExitStack() as stack:
        portable = options.view_as(PortableOptions)
        if server := _job_server(options):
            flink_cluster.check(options)
            portable.job_endpoint = stack.enter_context(_running(server))
        if portable.job_endpoint and portable.job_endpoint != "embed":
            _check_options(portable.job_endpoint, unknown)
        elif unknown:
            raise _unknown(unknown)
        yield


@contextlib.contextmanager
def _ends_as_interrupts() -> Iterator[None]:
    """Turns signals that end the process into interrupts while the block runs: the job would go on without it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # One that is ignored, as `nohup` has it, stays ignored.
    ends = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in ends:
        signal.signal(number, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """Keeps an interrupt until the block ends, so that a job is not submitted without anyone knowing its name.

    The second interrupt is raised at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        # Beam may have set a handler of its own meanwhile, which stops the server first.
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def begin_job(options: PipelineOptions, phase: str, note: str) -> None:
    """Gives the next job a name that no other has, after the user's `--job_name` if there is one.

    Args:
        options: Beam's; they get the name.
        phase: what the job does.
        note: the path of a file that says where the job is. A command that is killed leaves its job on the cluster,
            and the next one ends it with `end_job`.
    """
    named = options.view_as(GoogleCloudOptions)
    stem = (named.job_name or "elmo-tf").partition(_PHASE_MARK)[0]
    named.job_name = f"{stem}{_PHASE_MARK}{phase}-{uuid.uuid4().hex[:12]}"
    where, runner = flink_cluster.address(options) or "", options.view_as(StandardOptions).runner
    filesystems.write_json(note, {"runner": runner, "address": where, "name": named.job_name})


def end_job(options: PipelineOptions, note: str) -> None:
    """Cancels the job of an earlier run if it has not ended, and deletes its note.

    The cluster is asked only at the address that the options name: whoever can write to the output folder can write any
    address into the note.

    Args:
        options: Beam's, of this run.
        note: of `begin_job`.

    Raises:
        ChildProcessError: if nobody knows that it has ended. Its workers may write to the output.
    """
    earlier = filesystems.read_json(note, _NOTE)
    if not earlier:
        raise ChildProcessError(f"the job of an earlier run may go on; {_AFTERWARDS} {note}, which is damaged")
    name, where = earlier["name"], earlier["address"]
    if not where:
        page = f"the page of its {earlier['runner']}"
        raise ChildProcessError(f"the job {name} of an earlier run may go on; see {page}, and {_AFTERWARDS} {note}")
    if where != flink_cluster.address(options):
        raise ChildProcessError(
            f"the job {name} of an earlier run may go on; run the command with the options for its cluster {where}, or "
            f"{_AFTERWARDS} {note}"
        )
    if not flink_cluster.cancel(where, name, _CANCEL_SECONDS):
        raise ChildProcessError(
            f"the job {name} of an earlier run may go on; cancel it on {where}, or {_AFTERWARDS} {note}"
        )
    filesystems.delete([note])


def execute(pipeline: beam.Pipeline, note: str) -> str | None:
    """Runs a pipeline to its end, and cancels its job on an interrupt; returns its last state.

    Args:
        pipeline: what to run.
        note: of `begin_job`; deleted if the job is known to have ended.
    """
    cancel, result = canceller(pipeline.options, note), None
    try:
        with interrupts_later():
            result = pipeline.run()
        state = result.wait_until_finish()
    except KeyboardInterrupt:
        if result is None:
            raise
        raise KeyboardInterrupt(f"interrupted; {cancel(result)}") from None
    except Exception:
        if result is not None:
            forget_job(result, note)
        raise
    forget_job(result, note)
    return state


def error(text: str) -> Exception:
    """Returns the error of a job in one line, given its text: what a worker lacks, or the innermost exception."""
    if found := _NO_MODULE.search(text):
        package = "elmo_tf, or its version" if found[1].startswith("elmo_tf") else "a package"
        return ChildProcessError(f"workers lack {package} that this command has: no module {found[1]}")
    causes = _JAVA.findall(text)
    reason = (
        ": ".join(causes[-1]) if causes else next((line for line in reversed(text.split("\n")) if line.strip()), "")
    )
    return ChildProcessError(f"the remote job failed: {' '.join(reason.split())}; see the runner's own page")


def forget_job(result: PipelineResult, note: str) -> None:
    """Deletes the note of a job that its runner has reported as ended."""
    with contextlib.suppress(Exception):  # of any runner: it does not answer
        if PipelineState.is_terminal(result.state):
            filesystems.delete([note])


def canceller(options: PipelineOptions, note: str) -> Callable[[PipelineResult], str]:
    """Returns a function that cancels a job of these options, waits for its end, and says what became of it.

    It deletes the job's note if the cluster has confirmed the end. Call it before the job is submitted: Beam then
    changes the options.
    """
    where, name = flink_cluster.address(options), options.view_as(GoogleCloudOptions).job_name

    def cancel(result: PipelineResult) -> str:
        _log.info("cancelling the remote job")
        is_ended = False
        with contextlib.suppress(Exception):  # of any runner, which says no more than that it did not work
            result.cancel()
            is_ended = _ends(result)
        if where:
            is_ended = flink_cluster.cancel(where, name, _CANCEL_SECONDS, _APPEAR_SECONDS)
        if is_ended and not where and _has_service(options):
            return "the job server says that the job is cancelled; see the runner's own page"
        if is_ended:
            filesystems.delete([note])
            return "the remote job is cancelled"
        return "the remote job could not be cancelled and may go on: see the runner's own page"

    return cancel


def _has_service(options: PipelineOptions) -> bool:
    """Whether the runner is behind a job service: any remote one of Beam but Google's."""
    return options.view_as(StandardOptions).runner != "DataflowRunner"


def _ends(result: PipelineResult) -> bool:
    for _ in range(round(_CANCEL_SECONDS / _POLL_SECONDS)):
        if PipelineState.is_terminal(result.state):
            return True
        time.sleep(_POLL_SECONDS)
    return False


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
    """Keeps quiet about Beam's threads that still listen to a job server when it ends."""
    before = threading.excepthook

    def quiet(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, grpc.RpcError):
            before(arguments)

    threading.excepthook = quiet
    try:
        yield
        for thread in threading.enumerate():
            if thread.name.startswith("wait_until_finish"):
                thread.join(_POLL_SECONDS)
    finally:
        threading.excepthook = before


def _job_server(options: PipelineOptions) -> job_server.JavaJarJobServer | None:
    """Returns the job server that the runner needs; None if it has one or is one."""
    runner = options.view_as(StandardOptions).runner
    if options.view_as(PortableOptions).job_endpoint:
        return None
    if runner == "FlinkRunner" and not options.view_as(FlinkRunnerOptions).flink_submit_uber_jar:
        flink = options.view_as(FlinkRunnerOptions)
        flink.flink_master = flink_cluster.address(options) or flink.flink_master
        return flink_runner.FlinkJarJobServer(options)
    if runner == "SparkRunner" and not options.view_as(SparkRunnerOptions).spark_submit_uber_jar:
        return spark_runner.SparkJarJobServer(options)
    return None


@contextlib.contextmanager
def _running(server: job_server.JavaJarJobServer) -> Iterator[str]:
    """Yields the address of a job server, which runs while the block runs."""
    parameter = "flink_job_server_jar" if isinstance(server, flink_runner.FlinkJarJobServer) else "spark_job_server_jar"
    with tempfile.TemporaryDirectory(prefix="elmo-tf-job-server-") as folder:
        server._local_temp_root = folder
        try:
            command, endpoint = server.subprocess_cmd_and_endpoint()
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(parameter, "a jar, or a network to download it from", reason) from None
        log = pathlib.Path(folder, "log")
        with log.open("wb") as out:
            process = _start([str(part) for part in command], out)
        try:
            _wait(endpoint, process, log)
            yield endpoint
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


def _start(command: list[str], out) -> subprocess.Popen:
    """Starts a program that Ctrl-C does not reach, and which on Linux ends with this process in any case."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # One call of the system, which takes no lock that a thread may hold.
            preexec_fn=prctl and functools.partial(prctl, _PARENT_DEATH_SIGNAL, signal.SIGTERM),  # noqa: PLW1509
        )
    except OSError as error:
        raise ChildProcessError(f"cannot start the job server: {error.strerror}: {command[0]}") from None


def _wait(endpoint: str, process: subprocess.Popen, log: pathlib.Path) -> None:
    """Returns once the server answers. Raises ChildProcessError if it ends or takes too long."""
    with grpc.insecure_channel(endpoint) as channel:
        ready = grpc.channel_ready_future(channel)
        for _ in range(round(_START_SECONDS / _POLL_SECONDS)):
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(_POLL_SECONDS)
                return
            if process.poll() is not None:
                lines = log.read_text(errors="replace").split("\n")
                reason = next(
                    (line.strip() for line in lines if "rror" in line or "xception" in line), "no reason given"
                )
                raise ChildProcessError(f"the job server ended: {reason}")
    raise ChildProcessError(f"the job server did not start within {_START_SECONDS} s")


def _check_options(endpoint: str, unknown: Sequence[str]) -> None:
    """Raises `InputError` if no job service answers, or it does not know one of the options."""
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        try:
            described = service.DescribePipelineOptions(
                beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=_ANSWER_SECONDS
            )
        except grpc.RpcError as error:
            raise InputError(
                "job_endpoint", "the address of a job service that answers", f"{error.code().name}: {endpoint}"
            ) from None
    known = {option.name for option in described.options}
    wrong = [argument for argument in unknown if argument.startswith("-") and _name(argument) not in known]
    if wrong or (unknown and not unknown[0].startswith("-")):
        raise _unknown(wrong or unknown)


def _name(argument: str) -> str:
    return argument.lstrip("-").partition("=")[0]


def _unknown(arguments: Sequence[str]) -> InputError:
    return InputError("runner", "options that Beam or its job service know", f"unknown ones: {' '.join(arguments)}")
