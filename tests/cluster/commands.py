"""Commands as a person starts them, and what they write."""

import subprocess
import time
from collections.abc import Callable

from tests.beam import common

SECONDS = 900
# More threads would compete with the workers, and add in another order.
_THREADS = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def start(*arguments: object, **variables: str) -> subprocess.Popen:
    return common.start(*arguments, **(_THREADS | variables))


def finished(process: subprocess.Popen) -> str:
    return process.communicate(timeout=SECONDS)[1]


def done(*arguments: object) -> str:
    """Runs a command to its end; returns what it printed on stderr."""
    process = start(*arguments)
    err = finished(process)
    assert process.returncode == 0, err
    return err


def refused(*arguments: object, **variables: str) -> str:
    """Runs a command that fails; returns its error, the only line."""
    process = start(*arguments, **variables)
    err = finished(process)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    line = err.splitlines()[-1]
    assert line.startswith("elmo-tf: error: "), err
    return line.removeprefix("elmo-tf: error: ")


def wait_for(happens: Callable[[], bool], process: subprocess.Popen) -> None:
    """Returns when something happens while the process runs."""
    end = time.monotonic() + SECONDS
    while not happens():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.05)
