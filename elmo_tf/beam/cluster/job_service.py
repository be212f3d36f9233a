"""Remote runners: the job service that takes their pipelines, and jobs that end with the command."""

import contextlib
import logging
import re
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Sequence

import apache_beam as beam
import grpc
import msgspec
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.runner import PipelineResult, PipelineState

from elmo_tf.beam.cluster import flink_cluster, java_server
from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError

_ANSWER_SECONDS = 10
_CANCEL_SECONDS = 60
_APPEAR_SECONDS = 5  # to wait for a job that was being submitted
_POLL_SECONDS = 0.2
_PHASE_MARK = "-phase-"
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_JAVA = re.compile(r"(?:^|Caused by: )(?:[\w$]+\.)+(\w+(?:Exception|Error)): ([^\n]+)", re.MULTILINE)
_log = logging.getLogger("elmo_tf")


class _Note(msgspec.Struct, frozen=True):
    """Where a job runs."""

    runner: str
    address: str  # of the Flink cluster; "" if the options name none
    name: str


@contextlib.contextmanager
def connected(options: PipelineOptions, unknown: Sequence[str] = ()) -> Iterator[None]:
    """Provides a job service for the pipelines of the block, and sets its address in `options`.

    While the block runs, SIGTERM and SIGHUP end the job as Ctrl-C does. The service has to know the arguments that are
    `unknown` to Beam's Python code.

    Raises:
        InputError: if there is no cluster, it has another version, or the service does not know an option.
        ChildProcessError: if the job server does not start.
    """
    with _ends_as_interrupts(), _quiet_threads(), contextlib.ExitStack() as stack:
        portable = options.view_as(PortableOptions)
        if options.view_as(StandardOptions).runner == "FlinkRunner" and not portable.job_endpoint:
            flink = options.view_as(FlinkRunnerOptions)
            flink.flink_master = flink_cluster.address(options) or flink.flink_master
            flink_cluster.check(options)
            portable.job_endpoint = stack.enter_context(java_server.running(options))
        if not portable.job_endpoint:
            raise InputError("job_endpoint", "the address of a job service", "none")
        _check_options(portable.job_endpoint, unknown)
        yield


@contextlib.contextmanager
def _ends_as_interrupts() -> Iterator[None]:
    """Turns signals that end the process into interrupts while the block runs: the job would go on without it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A signal that is ignored, as under `nohup`, stays ignored.
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
    """Delays an interrupt until the block ends, so that no job is submitted whose name nobody knows.

    A second interrupt is raised at once.
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
        # Replaces the handler that Beam may have set meanwhile.
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def begin_job(options: PipelineOptions, phase: str, note: str) -> None:
    """Gives the next job a unique name, which begins with the user's `--job_name` if there is one.

    The file `note` says where the job is: a command that is killed leaves its job on the cluster, and the next one ends
    it with `end_job`.
    """
    named = options.view_as(GoogleCloudOptions)
    stem = (named.job_name or "elmo-tf").partition(_PHASE_MARK)[0]
    named.job_name = f"{stem}{_PHASE_MARK}{phase}-{uuid.uuid4().hex[:12]}"
    where, runner = flink_cluster.address(options) or "", options.view_as(StandardOptions).runner
    filesystems.write_json(note, {"runner": runner, "address": where, "name": named.job_name})


def end_job(options: PipelineOptions, note: str) -> None:
    """Cancels the job of an earlier run if it has not ended, and deletes its note.

    Only the cluster that this run's options name is asked: whoever can write to the output folder can write any address
    into the note.

    Raises:
        ChildProcessError: if the job may still be running. Its workers may write to the output.
    """
    earlier = filesystems.read_json(note, _Note)
    is_ours = earlier and earlier.address and earlier.address == flink_cluster.address(options)
    if is_ours and flink_cluster.cancel(earlier.address, earlier.name, _CANCEL_SECONDS):
        filesystems.delete([note])
        return
    job = f"the job {earlier.name} of {earlier.address or earlier.runner}" if earlier else "the job of an earlier run"
    raise ChildProcessError(f"{job} may still be running; cancel it there, or once it has ended, delete {note}")


def execute(pipeline: beam.Pipeline, note: str) -> str | None:
    """Runs a pipeline to its end, and cancels its job on an interrupt; returns its last state.

    The note of `begin_job` is deleted if the job is known to have ended.
    """
    # Beam changes the options when it submits the job.
    where, name = flink_cluster.address(pipeline.options), pipeline.options.view_as(GoogleCloudOptions).job_name
    result = None
    try:
        with interrupts_later():
            result = pipeline.run()
        state = result.wait_until_finish()
    except KeyboardInterrupt:
        if result is None:
            raise
        raise KeyboardInterrupt(f"interrupted; {cancel_job(result, where, name, note)}") from None
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
    causes = [": ".join(cause) for cause in _JAVA.findall(text)]
    lines = causes or [line for line in text.split("\n") if line.strip()] or [""]
    return ChildProcessError(f"the remote job failed: {' '.join(lines[-1].split())}; see the runner's own page")


def forget_job(result: PipelineResult, note: str) -> None:
    """Deletes the note of a job that its runner has reported as ended."""
    with contextlib.suppress(Exception):  # any runner may raise anything if it does not answer
        if PipelineState.is_terminal(result.state):
            filesystems.delete([note])


def cancel_job(result: PipelineResult, where: str | None, name: str, note: str) -> str:
    """Cancels a job, waits for its end and reports its final state.

    The Flink cluster at `where`, if there is one, has to confirm the end; then the note of `begin_job` is deleted.
    """
    _log.info("cancelling the remote job")
    is_ended = False
    with contextlib.suppress(Exception):  # a runner may raise anything, which says only that it failed
        result.cancel()
        is_ended = _ends(result)
    if where:
        is_ended = flink_cluster.cancel(where, name, _CANCEL_SECONDS, _APPEAR_SECONDS)
    if not is_ended:
        return "the remote job could not be cancelled and may still be running: see the runner's own page"
    if not where:
        return "the job server says that the job is cancelled; see the runner's own page"
    filesystems.delete([note])
    return "the remote job is cancelled"


def _ends(result: PipelineResult) -> bool:
    for _ in range(round(_CANCEL_SECONDS / _POLL_SECONDS)):
        if PipelineState.is_terminal(result.state):
            return True
        time.sleep(_POLL_SECONDS)
    return False


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
    """Hides the errors of Beam's threads that still listen to a job server when it ends."""
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


def _check_options(endpoint: str, unknown: Sequence[str]) -> None:
    """Raises `InputError` if no job service answers, or it does not know one of the options."""
    request = beam_job_api_pb2.DescribePipelineOptionsRequest()
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        try:
            described = service.DescribePipelineOptions(request, timeout=_ANSWER_SECONDS)
        except grpc.RpcError as error:
            found = f"{error.code().name}: {endpoint}"
            raise InputError("job_endpoint", "the address of a job service that answers", found) from None
    known = {option.name for option in described.options}
    names = {argument: argument.lstrip("-").partition("=")[0] for argument in unknown if argument.startswith("-")}
    wrong = [argument for argument, name in names.items() if name not in known]
    if wrong or (unknown and not unknown[0].startswith("-")):
        found = f"unknown ones: {' '.join(wrong or unknown)}"
        raise InputError("runner", "options that Beam or its job service know", found)
