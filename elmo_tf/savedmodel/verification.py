"""Verifies a SavedModel: its files by their checksums, then its vectors in a process that imports TensorFlow only."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import checksums, standalone_checker

PROBES_FILE = "assets.extra/probes.npz"


class VerificationError(OSError):
    """A model that was just written does not do what it should: TensorFlow, disk or memory have a defect."""


def verify(path: str | os.PathLike, argument: str = "DIR") -> Iterator[str]:
    """Yields a line for each thing that was found right.

    Args:
        path: a version's folder, or a model's, of which the newest version is taken.
        argument: what an error calls `path`.

    Raises:
        InputError: naming the file that is missing, damaged or unknown, or the output that differs.
    """
    folder = checksums.find_version(path, argument)
    checksums.check(folder, argument, thorough=True)
    listed = checksums.read(folder, argument)
    if PROBES_FILE not in listed:
        raise InputError(f"{argument}: expected {PROBES_FILE} in the list {checksums.FILE}, found none: {folder}")
    size = sum(about["bytes"] for about in listed.values())
    yield f"{folder}: {len(listed)} files, {size:,} bytes, all with the SHA-256 of {checksums.FILE}"
    problems = problems_in_fresh_process(folder)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InputError(f"{argument}: expected what was exported, found {problems[0]}{more}: {folder}")
    ways = ", ".join(standalone_checker.SIGNATURES)
    yield f"{folder}: signatures {ways} and the call give the vectors of {PROBES_FILE}"


def problems_in_fresh_process(folder: pathlib.Path) -> list[str]:
    """Returns what a process that imports TensorFlow only finds wrong with a SavedModel, a line each."""
    command = [sys.executable, "-P", standalone_checker.__file__, str(folder), str(folder / PROBES_FILE)]
    # On the CPU: a GPU's memory may be taken, and its products are less exact.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return []
    return done.stdout.splitlines() or done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
