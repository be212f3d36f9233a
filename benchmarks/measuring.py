"""What several benchmarks do: take the time, print tables and a line of JSON."""

import json
import resource
import time
from collections.abc import Callable, Sequence

import numpy as np

_CLOCKS = (time.perf_counter, time.process_time)


def timed(function: Callable[[], object]) -> np.ndarray:
    """Returns the seconds and the CPU seconds of a call."""
    started_at = [clock() for clock in _CLOCKS]
    function()
    return np.array([clock() - start for clock, start in zip(_CLOCKS, started_at, strict=True)])


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of the child processes that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def report(figures: dict[str, float]) -> None:
    """Prints a figure per line, then all as JSON."""
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}} {value:12,.3f}")
    print(json.dumps({name: float(f"{value:.5g}") for name, value in figures.items()}))


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Returns the lines of a table with columns as wide as their longest entries."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
