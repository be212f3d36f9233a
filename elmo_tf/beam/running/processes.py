"""Worker processes of the in-memory runner: fast to start, and if one dies, the job fails.

Beam's own multi-processing mode starts a new Python for every worker of every pipeline, and hangs when a worker dies.
Here workers are forked from a process that has already imported what they need.
"""

import logging
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import threading
from collections.abc import Sequence

from apache_beam.portability.api import beam_fn_api_pb2, endpoints_pb2
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.transforms import environments
from google.protobuf import json_format, text_format

DIED = "elmo_tf: a worker process died"
CLOSED = "Channel closed prematurely."  # what Beam says if it notices a worker's death before the handler below does
_URN = "elmo_tf:env:worker_process:v1"
_POLL_SECONDS = 0.1
_context = multiprocessing.get_context("forkserver")


def prepare(modules: Sequence[str]) -> None:
    """Starts the process that workers are forked from, which imports `modules` and what every worker needs."""
    first = "elmo_tf.beam.running.worker_start"
    _context.set_forkserver_preload([first, __name__, "apache_beam.runners.worker.sdk_worker_main", *modules])
    multiprocessing.forkserver.ensure_running()


@environments.Environment.register_urn(_URN, None)
class WorkerProcesses(environments.DefaultEnvironment):
    """Workers that are processes on this machine."""

    def to_runner_api_parameter(self, context) -> tuple[str, None]:
        """Returns the name by which the runner finds the handler below."""
        return _URN, None

    @staticmethod
    def from_runner_api_parameter(payload, capabilities, artifacts, resource_hints, context) -> "WorkerProcesses":
        """Returns the environment that `to_runner_api_parameter` describes."""
        return WorkerProcesses(capabilities, artifacts, resource_hints)


def fail_requests(connection: worker_handlers.ControlConnection) -> None:
    """Answers all open requests to a dead worker with an error: Beam's runner waits without a timeout."""
    for identifier, future in list(connection._futures_by_id.items()):
        if not future.is_done():
            future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=identifier, error=DIED))


@worker_handlers.WorkerHandler.register_environment(_URN, None)
class _Handler(worker_handlers.GrpcWorkerHandler):
    """Starts one process. If it dies, all requests to it fail."""

    def __init__(self, payload, state, provision_info, grpc_server):
        super().__init__(state, provision_info, grpc_server)
        self._stopping = threading.Event()

    def start_worker(self) -> None:
        environment = {
            "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(
                endpoints_pb2.ApiServiceDescriptor(url=self.control_address)
            ),
            "PIPELINE_OPTIONS": json_format.MessageToJson(self.provision_info.provision_info.pipeline_options),
            "WORKER_ID": self.worker_id,
        }
        self._process = _context.Process(target=_work, args=(environment,), daemon=True)
        self._process.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop_worker(self) -> None:
        self._stopping.set()
        self._process.join()

    def _watch(self) -> None:
        self._process.join()
        # The runner may send further requests before it gives up.
        while not self._stopping.is_set():
            fail_requests(self.control_conn)
            self._stopping.wait(_POLL_SECONDS)


def _work(environment: dict[str, str]) -> None:
    """Serves the runner until it stops the worker. The runner gets the errors of steps."""
    from apache_beam.runners.worker import sdk_worker_main

    # Ctrl-C is for the process that started this one, which then stops it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # Beam prints every traceback that the runner raises again, and TensorFlow's C++ code its start-up notes.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    _, harness, _ = sdk_worker_main.create_harness(environment)
    harness.run()
