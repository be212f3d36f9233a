"""Worker processes of the in-memory runner: fast to start, and if one dies, the job fails.

Beam's own multi-processing mode starts a new Python for every worker, and hangs when a worker dies. Here workers are
forked from a process that has already imported what they need, and end with the process that started them.
"""

import contextlib
import functools
import logging
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence

from apache_beam.portability.api import endpoints_pb2
from google.protobuf import json_format, text_format

from elmo_tf.beam import beam_internals

_DIED = "a worker process died"
_URN = "elmo_tf:env:worker_process:v1"
_POLL_SECONDS = 0.1
_NOTICE_SECONDS = 2  # until a worker's death is known here, after Beam has said that its channel is closed
_context = multiprocessing.get_context("forkserver")
_death = threading.Event()  # set when a worker has died


@contextlib.contextmanager
def prepared(modules: Sequence[str]) -> Iterator[None]:
    """Starts the process that workers are forked from, which imports `modules` and what every worker needs.

    In the block, Beam's threads print no tracebacks about dead workers.
    """
    _death.clear()
    first = "elmo_tf.beam.worker_start"
    _context.set_forkserver_preload([first, __name__, beam_internals.WORKER_MODULE, *modules])
    multiprocessing.forkserver.ensure_running()
    before = threading.excepthook
    threading.excepthook = functools.partial(_quiet, before)
    try:
        yield
    finally:
        threading.excepthook = before


def check() -> None:
    """Raises `ChildProcessError` if a worker has died, or is found dead within a moment."""
    if _death.wait(_NOTICE_SECONDS):
        raise ChildProcessError(_DIED) from None


@beam_internals.Environment.register_urn(_URN, None)
class WorkerProcesses(beam_internals.DefaultEnvironment):
    """Workers that are processes on this machine."""

    def to_runner_api_parameter(self, context) -> tuple[str, None]:
        """Returns the name by which the runner finds the handler below."""
        return _URN, None

    @staticmethod
    def from_runner_api_parameter(payload, capabilities, artifacts, resource_hints, context) -> "WorkerProcesses":
        """Returns the environment that `to_runner_api_parameter` describes."""
        return WorkerProcesses(capabilities, artifacts, resource_hints)


@beam_internals.WorkerHandler.register_environment(_URN, None)
class _Handler(beam_internals.GrpcWorkerHandler):
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
        if self._stopping.is_set():
            return
        _death.set()
        # The runner may send further requests before it gives up.
        while not self._stopping.is_set():
            beam_internals.fail_requests(self.control_conn, _DIED)
            self._stopping.wait(_POLL_SECONDS)


def _quiet(before: Callable[[threading.ExceptHookArgs], None], arguments: threading.ExceptHookArgs) -> None:
    """Hides the errors of Beam's threads that have read from a dead worker: the job fails in one line."""
    frames = traceback.walk_tb(arguments.exc_traceback)
    is_beams = any("apache_beam" in frame.f_code.co_filename for frame, _ in frames)
    # Such a thread may end before the death is known.
    if not (is_beams and _death.wait(_NOTICE_SECONDS)):
        before(arguments)


def _work(environment: dict[str, str]) -> None:
    """Serves the runner until it stops the worker. The command gets the errors of tasks."""
    # Ctrl-C is for the process that started this one, which then stops it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # Beam prints every traceback that the runner raises again, and TensorFlow's C++ code its start-up notes.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    beam_internals.create_harness(environment).run()


def _end_with_parent() -> None:
    """Ends this process when the one that started it ends, even by SIGKILL."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
