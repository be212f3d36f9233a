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
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf import json_format

from elmo_tf.beam import beam_internals
from elmo_tf.beam.beam_internals import environments, worker_handlers

_DIED = "a worker process died"
_URN = "elmo_tf:env:worker_process:v1"
_POLL_SECONDS = 0.1
_NOTICE_SECONDS = 2  # to notice a worker's death here, after Beam has reported its channel closed
_context = multiprocessing.get_context("forkserver")
_death = threading.Event()  # set when a worker has died


@contextlib.contextmanager
def fork_server(module: str) -> Iterator[None]:
    """Starts the process that workers are forked from, which imports `module` and what every worker needs.

    In the block, Beam's threads print no tracebacks about dead workers.
    """
    _death.clear()
    _context.set_forkserver_preload(["elmo_tf.beam.worker_start", __name__, beam_internals.WORKER_MODULE, module])
    multiprocessing.forkserver.ensure_running()
    original_hook = threading.excepthook
    threading.excepthook = functools.partial(_hide_beam_errors, original_hook)
    try:
        yield
    finally:
        threading.excepthook = original_hook


def check() -> None:
    """Raises `ChildProcessError` if a worker has died, or its death is noticed within a moment."""
    if _death.wait(_NOTICE_SECONDS):
        raise ChildProcessError(_DIED) from None


@environments.Environment.register_urn(_URN, None)
class WorkerProcesses(environments.DefaultEnvironment):
    """Workers that are processes on this machine."""

    def to_runner_api_parameter(self, context: Any) -> tuple[str, None]:
        """Returns the name by which the runner finds the handler below."""
        return _URN, None

    @staticmethod
    def from_runner_api_parameter(payload: Any, *arguments: Any, **named: Any) -> "WorkerProcesses":
        """Returns the environment that `to_runner_api_parameter` describes."""
        return WorkerProcesses(*arguments[:-1])


@worker_handlers.WorkerHandler.register_environment(_URN, None)
class _Handler(worker_handlers.GrpcWorkerHandler):
    """Starts one process. If it dies, all requests to it fail."""

    def __init__(self, payload: None, *arguments: Any):
        super().__init__(*arguments)
        self._stopping = threading.Event()

    def start_worker(self) -> None:
        environment = {
            "CONTROL_API_SERVICE_DESCRIPTOR": f'url: "{self.control_address}"',
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


def _hide_beam_errors(
    original_hook: Callable[[threading.ExceptHookArgs], object], arguments: threading.ExceptHookArgs
) -> None:
    """Hides the errors of Beam's threads that were reading from a dead worker: the job fails with one line instead."""
    is_beams = any("apache_beam" in frame.f_code.co_filename for frame, _ in traceback.walk_tb(arguments.exc_traceback))
    # Such a thread may end before the worker's death is noticed.
    if not (is_beams and _death.wait(_NOTICE_SECONDS)):
        original_hook(arguments)


def _work(environment: dict[str, str]) -> None:
    """Serves the runner until it stops the worker."""
    # Ctrl-C is handled by the parent process, which then stops this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # Beam prints tracebacks, which the command reports itself; TensorFlow's C++ code prints start-up notes.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    beam_internals.create_harness(environment).run()


def _end_with_parent() -> None:
    """Ends this process when the one that started it ends, even by SIGKILL."""
    parent = multiprocessing.parent_process()
    multiprocessing.connection.wait([parent.sentinel] if parent else [])
    os._exit(1)
