"""Beam's side of a job: its own options, the runner, the log level, and errors raised in workers."""

import argparse
import contextlib
import logging
import os
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState

from elmo_tf.beam.running import loopback, processes
from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError

# Runs in memory, in this process or in several (--direct_num_workers), without a network.
DEFAULT_RUNNER = "FnApiRunner"
_REMOTE = ("PortableRunner", "FlinkRunner")  # hand the pipeline to another program
# Not Beam's own default, DirectRunner, nor PrismRunner: both start a Go program that listens on all addresses.
_RUNNERS = (DEFAULT_RUNNER, *_REMOTE)
# Beam's options that errors name.
PARAMETERS = ("runner", "flink_master", "flink_version", "flink_job_server_jar", "job_endpoint")
_LOGGERS = {
    "apache_beam": logging.WARNING,
    # These print errors of steps, which are raised again here.
    "apache_beam.runners.common": logging.CRITICAL,
    "apache_beam.runners.portability.local_job_service": logging.CRITICAL,
    "apache_beam.runners.portability.portable_runner": logging.CRITICAL,
    "apache_beam.runners.worker": logging.CRITICAL,
}
# Most runners pass on only the text of an exception in a worker: its traceback, or a repr of that. Beam adds the step's
# name to an exception's first argument, so it may be anywhere in the message.
_IS_REPR = re.compile(r"\w+: b?['\"]")
_OWN_ERROR = r"(InputError|ReadError|WriteError): (.*?)"
_SYSTEM_ERROR = r"\w+Error: \[Errno \d+\] (.*?)"
_STEP = re.compile(r" \[while running '.*?'\]")


class _Parser(argparse.ArgumentParser):
    """Parses Beam's options."""

    def error(self, message: str) -> NoReturn:
        """Raises `InputError` where argparse would end the process."""
        raise InputError("beam", "options of Beam", message)

    def add_value_provider_argument(self, *names: str, **settings) -> None:
        """Adds an option that Beam declares for its templates as an ordinary one."""
        self.add_argument(*names, **settings)


def parse(arguments: Sequence[str]) -> tuple[PipelineOptions, list[str]]:
    """Returns Beam's options from a command line, and those among them that only a job service may know.

    Raises:
        InputError: if a value is wrong or an option, a misspelt one for example, is not Beam's. Beam itself would
            ignore it. A runner with a job service may know more of them: see `connected`.
    """
    parser = _Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    _, unknown = parser.parse_known_args(arguments)
    options = PipelineOptions(list(arguments))
    standard = options.view_as(StandardOptions)
    standard.runner = standard.runner or DEFAULT_RUNNER
    if unknown and not is_remote(options):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    # Some are for stores such as S3.
    FileSystems.set_options(options)
    return options, unknown


def uses_processes(options: PipelineOptions) -> bool:
    """Whether the options ask for several worker processes of the in-memory runner."""
    return options.view_as(DirectOptions).direct_running_mode == "multi_processing" and not is_remote(options)


def processes_per_machine(options: PipelineOptions) -> int | None:
    """Returns how many worker processes the options start on one machine; 0: one per core; None: none but this one."""
    if uses_processes(options):
        return options.view_as(DirectOptions).direct_num_workers
    if is_remote(options):
        return int(options.view_as(PortableOptions).sdk_worker_parallelism or 0)
    return None


def make_pipeline(options: PipelineOptions) -> beam.Pipeline:
    """Returns an empty pipeline with `options`, and changes Beam in this process for it.

    Beam's servers then listen on loopback addresses only. Unless the options set a log level, it logs warnings only.

    Raises:
        InputError: if the runner is unknown, or needs further options.
    """
    runner = options.view_as(StandardOptions).runner
    if runner not in _RUNNERS:
        raise InputError("runner", f"one of {', '.join(_RUNNERS)}", runner)
    loopback.restrict()
    worker = options.view_as(WorkerOptions)
    verbose = worker.default_sdk_harness_log_level or worker.sdk_harness_log_level_overrides
    if not verbose:
        for name, level in _LOGGERS.items():
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(level)
        logging.getLogger().addFilter(_is_of_others)
        if uses_processes(options):
            options = PipelineOptions.from_dictionary(options.get_all_options(drop_default=True))
            # Otherwise the runner would start its own kind of workers.
            options.view_as(DirectOptions).direct_running_mode = ""
            return beam.Pipeline(FnApiRunner(processes.WorkerProcesses()), options)
    try:
        return beam.Pipeline(options=options)
    except ValueError as error:
        raise InputError("runner", "one with all its options", " ".join(str(error).split())) from None


def _is_of_others(record: logging.LogRecord) -> bool:
    """Filters out what Beam logs on the root logger: tracebacks of its file systems."""
    return not record.pathname.startswith(os.path.dirname(beam.__file__) + os.sep)


def is_remote(options: PipelineOptions) -> bool:
    """Whether jobs run outside of this process, and continue if it dies."""
    return options.view_as(StandardOptions).runner in _REMOTE


def connected(
    options: PipelineOptions, unknown: Sequence[str], module: str, load_tensorflow: Callable[[], None] | None
) -> contextlib.AbstractContextManager:
    """Prepares for the pipelines of the block; for a remote runner, see `job_service.connected`.

    Worker processes of the in-memory runner import `module`; if this process does the work, it calls `load_tensorflow`.
    """
    make_pipeline(options)  # fails if the runner is not available
    if is_remote(options):
        from elmo_tf.beam.cluster import job_service

        return job_service.connected(options, unknown)
    if uses_processes(options):
        processes.prepare([module])
    elif load_tensorflow:
        load_tensorflow()
    return contextlib.nullcontext()


def execute(pipeline: beam.Pipeline, note: str) -> None:
    """Runs `pipeline` to its end, on a remote runner with the note of `job_service.begin_job`.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died, or the runner stopped without giving a reason.
    """
    job_service = None
    try:
        if is_remote(pipeline.options):
            from elmo_tf.beam.cluster import job_service

            state = job_service.execute(pipeline, note)
        else:
            state = pipeline.run().wait_until_finish()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if "KeyboardInterrupt" in text:
            raise KeyboardInterrupt from None
        if processes.DIED in text or (not job_service and processes.CLOSED in text):
            raise ChildProcessError(processes.DIED.removeprefix("elmo_tf: ")) from None
        if own := own_error(text) or (job_service and job_service.error(text)):
            raise own from None
        raise
    if state not in (None, PipelineState.DONE):
        raise ChildProcessError(f"the pipeline ended as {state}; see the runner's log for the reason")


def own_error(text: str) -> Exception | None:
    """Returns the last error of this project, or else of the operating system, in the text of a worker's exception."""
    kinds = {"ReadError": filesystems.ReadError, "WriteError": filesystems.WriteError}
    end = r"(?=\\n|\n|$)" if _IS_REPR.match(text) else r"(?=\n|$)"
    if found := re.findall(_OWN_ERROR + end, text):
        kind, message = found[-1]
        return kinds.get(kind, InputError.from_message)(_STEP.sub("", message))
    if found := re.findall(_SYSTEM_ERROR + end, text):
        reason, _, path = _STEP.sub("", found[-1]).partition(": ")
        return filesystems.ReadError(f"cannot read or write {path or 'a file'}: {reason}")
    return None
