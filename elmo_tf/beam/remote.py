"""Jobs on other machines, which end with the command."""

import contextlib
import logging
import re
import time
import uuid

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

from elmo_tf.beam import flink_cluster

_CANCEL_SECONDS = 60
_APPEAR_SECONDS = 5  # to wait for a job that was being submitted
_POLL_SECONDS = 0.2
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_log = logging.getLogger("elmo_tf")


def name_job(options: PipelineOptions) -> None:
    """Gives the job a unique name, which begins with the user's `--job_name` if there is one."""
    named = options.view_as(GoogleCloudOptions)
    named.job_name = f"{named.job_name or 'elmo-tf'}-{uuid.uuid4().hex[:12]}"


def execute(pipeline: beam.Pipeline) -> str | None:
    """Runs a pipeline to its end, and cancels its job on an interrupt; returns its last state."""
    # Beam changes the options when it submits the job.
    address = flink_cluster.cluster_address(pipeline.options)
    name = pipeline.options.view_as(GoogleCloudOptions).job_name
    result = None
    try:
        result = pipeline.run()
        return result.wait_until_finish()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_cancel(result, address, name)}") from None


def _cancel(result: PipelineResult | None, address: str | None, name: str) -> str:
    """Cancels a job and waits for its end; reports its final state. A Flink cluster itself has to confirm the end."""
    _log.info("cancelling the remote job")
    is_ended = False
    if address:
        is_ended = flink_cluster.cancel(address, name, _CANCEL_SECONDS, _APPEAR_SECONDS)
    elif result:
        with contextlib.suppress(Exception):  # a runner may raise any exception; all mean failure
            result.cancel()
            is_ended = _wait_for_end(result)
    if not is_ended:
        return "the remote job could not be cancelled and may still be running: check the runner's web interface"
    return "the remote job is cancelled" if address else "the runner says that the job is cancelled"


def _wait_for_end(result: PipelineResult) -> bool:
    for _ in range(round(_CANCEL_SECONDS / _POLL_SECONDS)):
        if PipelineState.is_terminal(result.state):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def failure_reason(error: Exception) -> str:
    """Returns a failed job's error in one line: the module that workers lack, or the last unindented line."""
    text = str(error)
    if module := _NO_MODULE.search(text):
        package = "elmo_tf" if module[1].split(".")[0] == "elmo_tf" else "the package"
        return f"the workers cannot import {module[1]}; install the same version of {package} there"
    lines = [line.removeprefix("Caused by: ") for line in text.split("\n") if line and not line[0].isspace()]
    return f"the remote job failed: {' '.join((lines or [repr(error)])[-1].split())}; check the runner's web interface"
