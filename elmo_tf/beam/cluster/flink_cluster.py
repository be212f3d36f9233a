"""A Flink cluster's REST interface: its version, and cancelling a job.

Beam's job server reports a job as cancelled but leaves it running on the cluster (seen with 2.70 and Flink 1.19).
"""

import contextlib
import http.client
import json
import time
import urllib.request
from typing import Any

from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability import flink_runner

from elmo_tf.errors import InputError

_ANSWER_SECONDS = 10
_POLL_SECONDS = 0.5
_UNANSWERED = (OSError, ValueError, http.client.HTTPException)  # no answer, or not Flink's
_ENDED = ("FINISHED", "CANCELED", "FAILED")


def address(options: PipelineOptions) -> str | None:
    """Returns the address of the Flink cluster; None if the options name none."""
    master = options.view_as(FlinkRunnerOptions).flink_master
    if options.view_as(StandardOptions).runner != "FlinkRunner" or master in flink_runner.MAGIC_HOST_NAMES:
        return None
    return flink_runner.FlinkRunner.add_http_scheme(master)


def check(options: PipelineOptions) -> None:
    """Raises `InputError` unless the cluster answers and has the version that the options name."""
    if (where := address(options)) is None:
        return
    try:
        version = _ask(f"{where}/config")["flink-version"]
    except (*_UNANSWERED, KeyError, TypeError) as error:
        # urllib wraps the operating system's error.
        inner = getattr(error, "reason", error)
        reason = getattr(inner, "strerror", None) or "something else answers"
        raise InputError("flink_master", "the address of a Flink cluster that answers", f"{reason}: {where}") from None
    asked = options.view_as(FlinkRunnerOptions).flink_version
    if not version.startswith(f"{asked}."):
        of_cluster = ".".join(version.split(".")[:2])
        raise InputError("flink_version", f"{of_cluster}, the version of the cluster at {where}", asked)


def cancel(where: str, name: str, seconds: float, appears: float = 0) -> bool:
    """Cancels the jobs with this name on the cluster at `where`, within `seconds`; returns whether none is left.

    `appears` is how long to wait for a job that may not have reached the cluster yet.
    """
    start = time.monotonic()
    while (waited := time.monotonic() - start) < seconds:
        with contextlib.suppress(*_UNANSWERED):
            jobs = [job for job in _ask(f"{where}/jobs/overview")["jobs"] if job["name"] == name]
            left = [job for job in jobs if job["state"] not in _ENDED]
            if not left and (jobs or waited >= appears):
                return True
            for job in left:
                _ask(f"{where}/jobs/{job['jid']}?mode=cancel", "PATCH")
        time.sleep(_POLL_SECONDS)
    return False


def _ask(url: str, method: str = "GET") -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=_ANSWER_SECONDS) as answer:
        return json.load(answer)
