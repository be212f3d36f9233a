"""A user's function that gets every line of `metrics.jsonl`."""

import logging
from collections.abc import Callable
from typing import Any

Record = dict[str, Any]  # of a line: the losses of a step, or an evaluation

_log = logging.getLogger("elmo_tf")


class RecordHook:
    """Calls a function with each record; an exception that it raises is a warning, once, and training goes on.

    Args:
        function: called with a dictionary of its own.
    """

    def __init__(self, function: Callable[[Record], None]):
        self._function = function
        self._warned = False

    def __call__(self, record: Record) -> None:
        try:
            self._function(dict(record))
        except Exception as error:
            if not self._warned:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                _log.warning("warning: on_record raised %s; training goes on, and further errors are not shown", reason)
            self._warned = True
