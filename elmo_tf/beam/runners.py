"""Beam's side of a job: its own options, the runner, the log level, running a pipeline to its end."""

import argparse
import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.runners.runner import PipelineState

from elmo_tf.beam import beam_internals, failures, flink_cluster, interrupts, output_folder, processes, remote
from elmo_tf.errors import InputError
from elmo_tf.files import stores

# Runs in memory, in this process or in several (--direct_num_workers), without a network.
DEFAULT_RUNNER = "FnApiRunner"
_LOCAL = (DEFAULT_RUNNER, "BundleBasedDirectRunner")
_PRISM = "starts Prism, a program that Beam downloads and that listens on all addresses"
_PRISM_RUNNERS = ("DirectRunner", "SwitchingDirectRunner", "InteractiveRunner", "TestDirectRunner", "PrismRunner")
_REFUSED = dict.fromkeys(_PRISM_RUNNERS, _PRISM) | {
    "KafkaStreamsRunner": "starts a Java program that listens on all addresses",
    "PythonRPCDirectRunner": "starts a job service that listens on all addresses",
}
_JAVA = "Beam would start its Java job server, which listens on all addresses and runs what it is sent"
# Beam's options that errors name.
PARAMETERS = ("runner", "direct_num_workers", "flink_master", "job_endpoint", "spark_master_url")
_LOGGERS = {
    "apache_beam": logging.WARNING,
    # These log task errors, which `run` re-raises.
    "apache_beam.runners.common": logging.CRITICAL,
    "apache_beam.runners.direct": logging.CRITICAL,
    "apache_beam.runners.portability": logging.CRITICAL,
    "apache_beam.runners.worker": logging.CRITICAL,
}


class _Parser(argparse.ArgumentParser):
    """Parses Beam's options."""

    def error(self, message: str) -> NoReturn:
        """Raises `InputError` instead of ending the process."""
        raise InputError("beam", message)

    def add_value_provider_argument(self, *names: str, **settings: Any) -> None:
        """Adds an option that Beam declares for its templates as an ordinary one."""
        self.add_argument(*names, **settings)


def parse(arguments: Sequence[str]) -> PipelineOptions:
    """Returns Beam's options from a command line.

    Raises `InputError` if a value is wrong, the runner is refused, or an option of a local runner is not Beam's.
    """
    parser = _Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    beam_internals.add_options(parser)
    _, unknown = parser.parse_known_args(arguments)
    options = PipelineOptions(list(arguments))
    standard = options.view_as(StandardOptions)
    standard.runner = standard.runner or DEFAULT_RUNNER
    if unknown and is_local(options):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    _check(options)
    # Passes the S3 and other file-system options to `FileSystems`.
    FileSystems.set_options(options)
    return options


def _name(options: PipelineOptions) -> str:
    """Returns the class name of the runner; Beam accepts any case, names without `Runner`, and class paths."""
    runner_name = options.view_as(StandardOptions).runner
    last = runner_name.rpartition(".")[2].lower()
    names = {name.lower(): name for name in (*StandardOptions.KNOWN_RUNNER_NAMES, *_REFUSED)}
    return names.get(last) or names.get(f"{last}runner") or runner_name


def is_local(options: PipelineOptions) -> bool:
    """Whether the job runs on this machine and ends with this process."""
    return _name(options) in _LOCAL


def _check(options: PipelineOptions) -> None:
    """Raises `InputError` for a runner that would listen beyond this machine, or start a program that does.

    Also for a negative number of workers.
    """
    if (workers := options.view_as(DirectOptions).direct_num_workers) < 0:
        raise InputError("direct_num_workers", "at least 0 (0: one per core)", workers)
    name, endpoint = _name(options), options.view_as(PortableOptions).job_endpoint
    if name in _REFUSED:
        raise InputError("runner", f"{name} {_REFUSED[name]}; use {DEFAULT_RUNNER}")
    if name == "PortableRunner" and not endpoint:
        raise InputError("job_endpoint", "give the address of a job service")
    flink, spark = options.view_as(FlinkRunnerOptions), options.view_as(SparkRunnerOptions)
    if name == "FlinkRunner" and not endpoint:
        if not flink.flink_submit_uber_jar:
            raise InputError("runner", f"{_JAVA}; add --flink_submit_uber_jar")
        if flink.flink_master in beam_internals.MAGIC_HOST_NAMES:
            raise InputError("flink_master", f"{_JAVA}; give the host:port of a cluster")
    if name == "SparkRunner" and not endpoint and not spark.spark_submit_uber_jar:
        raise InputError("runner", f"{_JAVA}; add --spark_submit_uber_jar and --spark_rest_url")


def uses_processes(options: PipelineOptions) -> bool:
    """Whether the options ask for several worker processes of the in-memory runner."""
    is_multi_process = options.view_as(DirectOptions).direct_running_mode == "multi_processing"
    return is_multi_process and _name(options) == DEFAULT_RUNNER


def processes_per_machine(options: PipelineOptions) -> int | None:
    """Returns how many worker processes the options start on one machine; 0: one per core; None: only this process."""
    if uses_processes(options):
        return options.view_as(DirectOptions).direct_num_workers
    return None if is_local(options) else int(options.view_as(PortableOptions).sdk_worker_parallelism or 0)


@contextlib.contextmanager
def configured_pipeline(
    options: PipelineOptions, module: str, load_tensorflow: Callable[[], None] | None = None
) -> Iterator[beam.Pipeline]:
    """Yields an empty pipeline with `options`, to be run in the block; raises `InputError` if the runner is unknown.

    In this process, Beam's servers then listen on loopback addresses only. Unless the options set a log level, Beam
    logs warnings only.

    Args:
        options: of Beam.
        module: what worker processes of the in-memory runner import.
        load_tensorflow: called if this process does the work.
    """
    beam_internals.listen_on_loopback()
    _quieten(options)
    runner: Any = None
    context: contextlib.AbstractContextManager = contextlib.nullcontext()
    if uses_processes(options):
        options = PipelineOptions.from_dictionary(options.get_all_options(drop_default=True))
        # Otherwise the runner would start its own kind of workers.
        options.view_as(DirectOptions).direct_running_mode = ""
        context = processes.fork_server(module)
        runner = beam_internals.FnApiRunner(processes.WorkerProcesses())
    elif is_local(options):
        if load_tensorflow:
            load_tensorflow()
    else:
        flink_cluster.check(options)
        remote.name_job(options)
    try:
        pipeline = beam.Pipeline(runner, options)
    # Beam imports and calls whatever the name refers to.
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        raise InputError("runner", " ".join(str(error).split())) from None
    try:
        with interrupts.termination_as_interrupt(), beam_internals.as_outside_notebooks(), context:
            yield pipeline
    finally:
        shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)  # if it did not run, Beam has not removed it


def _quieten(options: PipelineOptions) -> None:
    worker = options.view_as(WorkerOptions)
    if worker.default_sdk_harness_log_level or worker.sdk_harness_log_level_overrides:
        return
    beam_internals.hide_tracebacks()
    for name, level in _LOGGERS.items():
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(level)
    logging.getLogger().addFilter(_is_of_others)


def _is_of_others(record: logging.LogRecord) -> bool:
    """Filters out Beam's messages on the root logger: tracebacks of its file systems."""
    return not record.pathname.startswith(os.path.dirname(beam.__file__) + os.sep)


def run(pipeline: beam.Pipeline, folder: output_folder.Folder) -> None:
    """Runs `pipeline`, which writes to `folder`, to its end.

    Raises:
        InputError, ReadError, WriteError: that of a task that failed.
        ChildProcessError: if a worker process died, or a remote job failed.
    """
    runs_locally = is_local(pipeline.options)  # Beam changes the options when it runs the pipeline
    try:
        with interrupts.recorded() as interrupted:
            state = pipeline.run().wait_until_finish() if runs_locally else remote.execute(pipeline)
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        if not stores.exists(folder.file(output_folder.FILE)):
            problem = "was deleted, or finished by another run, before this run finished"
            raise stores.WriteError(f"{folder.path}: {problem}") from None
        if task_error := failures.task_error(folder):
            raise task_error from None
        if isinstance(pipeline.runner, beam_internals.FnApiRunner):
            processes.check()
        if not runs_locally:
            raise ChildProcessError(remote.failure_reason(error)) from None
        raise
    if state not in (None, PipelineState.DONE):
        raise ChildProcessError(f"the pipeline ended as {state}; see the runner's log for the reason")
