"""A user's function that gets every line of `metrics.jsonl`."""

import logging
from collections.abc import Callable
from typing import Any

MetricsLine = dict[str, Any]  # the losses of a step, or an evaluation

_log = logging.getLogger("elmo_tf")


def guarded(function: Callable[[MetricsLine], None]) -> Callable[[MetricsLine], None]:
    """Returns a function that calls `function` with a copy of a line; the first exception it raises is a warning."""
    warned = False

    def call(line: MetricsLine) -> None:
        nonlocal warned
        try:
            function(dict(line))
        except Exception as error:
            if not warned:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                _log.warning("warning: on_record raised %s; training goes on, and further errors are not shown", reason)
            warned = True

    return call
