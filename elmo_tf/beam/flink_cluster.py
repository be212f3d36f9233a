"""A Flink cluster's REST interface: whether it answers, and cancelling a job, for which Beam uses a wrong path.

Beam 2.77 requests `v1/JOB/stop`; Flink 1.19 has `v1/jobs/JOB?mode=cancel`.
"""

import contextlib
import http.client
import json
import time
import urllib.request
from typing import Any

from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions

from elmo_tf.beam import beam_internals
from elmo_tf.errors import InputError

_ANSWER_SECONDS = 10
_POLL_SECONDS = 0.5
_REQUEST_ERRORS = (OSError, ValueError, http.client.HTTPException)  # no answer, or not Flink's
_ENDED = ("FINISHED", "CANCELED", "FAILED")


def cluster_address(options: PipelineOptions) -> str | None:
    """Returns the address of the Flink cluster that jobs are sent to; None if they are not."""
    flink = options.view_as(FlinkRunnerOptions)
    if not flink.flink_submit_uber_jar or flink.flink_master in beam_internals.MAGIC_HOST_NAMES:
        return None
    return beam_internals.FlinkRunner.add_http_scheme(flink.flink_master)


def check(options: PipelineOptions) -> None:
    """Raises `InputError` if there is a cluster that does not answer."""
    if (address := cluster_address(options)) is None:
        return
    try:
        _request(f"{address}/config")["flink-version"]
    except (*_REQUEST_ERRORS, KeyError, TypeError) as error:
        # urllib wraps the operating system's error.
        inner = getattr(error, "reason", error)
        reason = getattr(inner, "strerror", None) or "the server there is not Flink"
        expected = "the address of a Flink cluster that answers"
        raise InputError("flink_master", expected, f"{reason}: {address}") from None


def cancel(address: str, name: str, seconds: float, startup_seconds: float = 0) -> bool:
    """Cancels the jobs with this name on the cluster at `address`, within `seconds`; returns whether all have ended.

    `startup_seconds` is how long to wait for a job that may not have reached the cluster yet.
    """
    start = time.monotonic()
    while (waited := time.monotonic() - start) < seconds:
        with contextlib.suppress(*_REQUEST_ERRORS):
            jobs = [job for job in _request(f"{address}/jobs/overview")["jobs"] if job["name"] == name]
            running = [job for job in jobs if job["state"] not in _ENDED]
            if not running and (jobs or waited >= startup_seconds):
                return True
            for job in running:
                _request(f"{address}/jobs/{job['jid']}?mode=cancel", "PATCH")
        time.sleep(_POLL_SECONDS)
    return False


def _request(url: str, method: str = "GET") -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=_ANSWER_SECONDS) as answer:
        return json.load(answer)
