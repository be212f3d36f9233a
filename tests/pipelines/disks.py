"""A disk that is soon full."""

import contextlib
import pathlib
import subprocess
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def small_disk(path: pathlib.Path, size: str) -> Iterator[pathlib.Path]:
    """Mounts an empty disk at `path`, which is made; skips the test where that is not allowed."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"needs the right to mount a tmpfs: {done.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)
