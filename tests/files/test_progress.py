"""The progress line on a stderr that cannot be written."""

import pathlib
import subprocess
import sys

import pytest

SHOWN = """
import os, signal
from elmo_tf.files.progress import ProgressLine
from elmo_tf.training.signals import Interrupt
line = ProgressLine()
line.show("a")
line.leave("b")
with Interrupt() as interrupt:
    os.kill(os.getpid(), signal.SIGINT)
print("goes on", interrupt.requested)
"""


@pytest.mark.parametrize("stderr", ["full", "closed"])
def test_a_log_that_cannot_be_written_ends_nothing(stderr):
    """Neither its disk that is full nor its reader that has gone."""
    if stderr == "full":
        if not pathlib.Path("/dev/full").exists():
            pytest.skip("no /dev/full on this machine")
        redirected = "2>/dev/full"
    else:
        redirected = "2> >(exit)"
    command = f"sleep 0.2; exec {sys.executable} -c '{SHOWN}' {redirected}"
    done = subprocess.run(["bash", "-c", command], check=False, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "goes on True\n")
