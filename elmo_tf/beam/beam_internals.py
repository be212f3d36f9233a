"""All private names of Beam 2.77 that this package uses, with the reason for each.

Modules whose global name `grpc` makes servers that listen on all addresses without authentication:
`abstract_job_service` (staging for Flink), `local_job_service`, `worker_handlers`, `worker_pool_main` (LOOPBACK).

For worker processes that fail the job when one dies: `worker_handlers.GrpcWorkerHandler` and its registry, the urns of
`environments.Environment`, `sdk_worker_main.create_harness`, and `ControlConnection._futures_by_id`: the runner waits
for a dead worker's answers without a timeout.

For workers that are threads (multi_threading): the `print` of `sdk_worker`, with which they print a step's traceback.

For options: `_add_argparse_args` of each kind of `PipelineOptions`: Beam itself ignores misspelled options.

For notebooks: `interactive_utils.is_in_ipython`. Beam imports its interactive runner where that is true, to label steps
by their cells; the runner needs pandas, and fails with pandas 3.
"""

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability import abstract_job_service, local_job_service
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES, FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.worker import sdk_worker, worker_pool_main
from apache_beam.transforms import environments
from apache_beam.utils import interactive_utils

WORKER_MODULE = "apache_beam.runners.worker.sdk_worker_main"

__all__ = ["MAGIC_HOST_NAMES", "FlinkRunner", "FnApiRunner", "environments"]


def _loopback_server(*arguments: Any, **settings: Any) -> grpc.Server:
    """Returns `grpc.server`'s server, which listens on loopback addresses whatever address it is given."""
    server = grpc.server(*arguments, **settings)
    listen = server.add_insecure_port
    server.add_insecure_port = lambda address: listen(f"localhost:{address.rpartition(':')[2]}")
    return server


def listen_on_loopback() -> None:
    """Makes the servers that Beam starts in this process from now on listen on loopback addresses only."""
    loopback_grpc = types.SimpleNamespace(**vars(grpc) | {"server": _loopback_server})
    for module in (abstract_job_service, local_job_service, worker_handlers, worker_pool_main):
        setattr(module, "grpc", loopback_grpc)  # noqa: B010


@contextlib.contextmanager
def as_outside_notebooks() -> Iterator[None]:
    """In the block, Beam builds pipelines in a notebook as in any other program."""
    is_in_ipython = interactive_utils.is_in_ipython
    interactive_utils.is_in_ipython = lambda: False
    try:
        yield
    finally:
        interactive_utils.is_in_ipython = is_in_ipython


def hide_tracebacks() -> None:
    """Makes workers that are threads of this process print nothing about a step's error, which the runner raises."""
    setattr(sdk_worker, "print", lambda *_, **__: None)  # noqa: B010


def add_options(parser: Any) -> None:
    """Adds all of Beam's options to a parser, which needs Beam's method `add_value_provider_argument`."""
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)


def fail_requests(connection: Any, reason: str) -> None:
    """Answers all open requests to a dead worker, whose `ControlConnection` it is, with an error."""
    for identifier, future in list(connection._futures_by_id.items()):
        if not future.is_done():
            future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=identifier, error=reason))


def create_harness(environment: dict[str, str]) -> Any:
    """Returns the worker that an environment describes."""
    from apache_beam.runners.worker import sdk_worker_main  # noqa: PLC0415 - it changes the process

    return sdk_worker_main.create_harness(environment)[1]
