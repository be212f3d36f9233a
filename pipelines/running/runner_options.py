"""Beam's side of a command line: which options are left for it, which runner, and how much it says."""

import argparse
import logging
import re
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions, WorkerOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState

from elmo_tf.errors import InputError
from pipelines.running import processes
from pipelines.text import filesystems

# In memory, in this process or with --direct_num_workers in several; it needs no network. Beam's own choice,
# DirectRunner, first looks for a binary to download.
DEFAULT_RUNNER = "FnApiRunner"
EPILOG = "Beam's own options are taken too: --direct_num_workers=N --direct_running_mode=multi_processing uses N cores."
_LOGGERS = {
    "apache_beam": logging.WARNING,
    # An error in a step is raised again here, which is enough.
    "apache_beam.runners.common": logging.CRITICAL,
    "apache_beam.runners.direct": logging.CRITICAL,
    "apache_beam.runners.portability.local_job_service": logging.CRITICAL,
    "apache_beam.runners.portability.portable_runner": logging.CRITICAL,
    "apache_beam.runners.worker": logging.CRITICAL,
}
_OWN_ERROR = re.compile(r"(CorpusError|InputError|ReadError|WriteError): (.*?)(?= \[while running |\\n|\n|$)")


class _NoUsage(argparse.ArgumentParser):
    """Takes Beam's options; an error in one goes to the parser of the command, which knows the usage."""

    def __init__(self, command: argparse.ArgumentParser):
        super().__init__(add_help=False, allow_abbrev=False, conflict_handler="resolve")
        self.error = command.error

    def add_value_provider_argument(self, *names: str, **settings) -> None:
        """Takes what Beam declares for its templates as an ordinary option."""
        self.add_argument(*names, **settings)


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> tuple[argparse.Namespace, PipelineOptions]:
    """Returns the parser's arguments, and what is left of `argv` as Beam's options.

    Prints the usage and exits with status 2 when an option is neither the parser's nor Beam's. Beam itself would pass
    over it in silence, and a misspelt option with it.

    Args:
        parser: made with `allow_abbrev=False`, or it would take `--run` for Beam's `--runner`.
        argv: arguments without the program's name; None: those of this process.
    """
    arguments, rest = parser.parse_known_args(argv)
    beam_parser = _NoUsage(parser)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(beam_parser)
    _, unknown = beam_parser.parse_known_args(rest)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options = PipelineOptions(rest)
    FileSystems.set_options(options)  # those of HDFS and S3, say
    standard = options.view_as(StandardOptions)
    standard.runner = standard.runner or DEFAULT_RUNNER
    return arguments, options


def uses_processes(options: PipelineOptions) -> bool:
    """Whether the in-memory runner is to have several worker processes."""
    several = options.view_as(DirectOptions).direct_running_mode == "multi_processing"
    return several and options.view_as(StandardOptions).runner == DEFAULT_RUNNER


def make_pipeline(options: PipelineOptions) -> beam.Pipeline:
    """Returns an empty pipeline that runs as `options` say, and below warnings quietly unless they ask for a log.

    Raises:
        InputError: if they name no runner, or one that lacks options.
    """
    worker = options.view_as(WorkerOptions)
    talkative = worker.default_sdk_harness_log_level or worker.sdk_harness_log_level_overrides
    for name, level in () if talkative else _LOGGERS.items():
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(level)
    if talkative or not uses_processes(options):
        try:
            return beam.Pipeline(options=options)
        except ValueError as error:
            raise InputError(f"--runner: expected one that can run, found {' '.join(str(error).split())}") from None
    options = PipelineOptions.from_dictionary(options.get_all_options(drop_default=True))
    options.view_as(DirectOptions).direct_running_mode = ""  # or the runner would start workers of its own kind
    return beam.Pipeline(FnApiRunner(processes.WorkerProcesses()), options)


def execute(pipeline: beam.Pipeline) -> None:
    """Runs `pipeline` and waits for its end.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died, or the runner gave up for a reason that it does not tell.
    """
    try:
        state = pipeline.run().wait_until_finish()
    except Exception as error:
        # Most runners pass on the text of an exception, not the exception.
        text = f"{type(error).__name__}: {error}"
        if "KeyboardInterrupt" in text:
            raise KeyboardInterrupt from None
        if processes.DIED in text:
            raise ChildProcessError(processes.DIED.removeprefix("elmo_tf: ")) from None
        if found := _OWN_ERROR.findall(text):
            kind, message = found[-1]
            raise {"ReadError": filesystems.ReadError, "WriteError": filesystems.WriteError}.get(kind, InputError)(
                message
            ) from None
        raise
    if state not in (None, PipelineState.DONE):
        raise ChildProcessError(f"the pipeline ended as {state}; the runner's log has the reason")
