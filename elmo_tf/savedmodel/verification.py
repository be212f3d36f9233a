"""Verifies a SavedModel: its files by their checksums, then its vectors in a process that imports only TensorFlow."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.published import arrays, models
from elmo_tf.published.options import read_options
from elmo_tf.savedmodel import assets, checksums, contract


class VerificationError(OSError):
    """A model that was just written gives other vectors in another process: a defect of TensorFlow, disk or memory."""


def verify(savedmodel: str | os.PathLike) -> Iterator[str]:
    """Yields a line for each check that has passed.

    Args:
        savedmodel: a version's folder; a model's folder, whose newest version is verified; or the name of a published
            model, whose files are compared with the table.

    Raises:
        InputError: naming the file that is missing, damaged or unknown, or the output that differs.
    """
    folder = assets.newest(savedmodel)
    if folder is None and models.is_name(savedmodel):
        row = models.find(str(savedmodel))
        files = row.files()
        if row.sha256 is None:
            for _ in arrays.read_weights(files.weights, read_options(files.options).model):
                pass  # each array is compared with the options, and its numbers are finite
        yield f"{files.weights}: {files.weights.stat().st_size:,} bytes, intact by its {row.checked}"
        return
    if folder is None:
        expected = f"(expected a folder with {contract.GRAPH_FILE}, or {models.expected_names()})"
        raise InputError(
            str(savedmodel), f"no model at this path or of this name{models.suggested(savedmodel)} {expected}"
        )
    staging.check_for_tensorflow(folder)
    listed = checksums.check(folder, thorough=True)
    checksums.check_unlisted(folder, listed)
    size = sum(about.bytes for about in listed.values())
    yield f"{folder}: {len(listed)} files, {size:,} bytes, all with the SHA-256 in {contract.CHECKSUMS_FILE}"
    if problems := problems_in_fresh_process(folder):
        raise InputError(str(folder), f"the model does not compute what was exported: {problems[0]}")
    yield f"{folder}: all its signatures return the values in {contract.SAMPLE_VECTORS_FILE}"


def problems_in_fresh_process(folder: pathlib.Path) -> list[str]:
    """Returns the problems that a process importing only TensorFlow finds in a SavedModel, a line each."""
    checker = pathlib.Path(__file__).with_name("standalone_checker.py")
    command = [sys.executable, "-P", str(checker), str(folder), str(folder / contract.SAMPLE_VECTORS_FILE)]
    # On the CPU: a GPU's memory may be taken, and its products are less exact.
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return []
    return done.stdout.splitlines() or done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
