"""What the tests of both jobs share: contents of folders, options for worker processes, a disk that is soon full."""

import contextlib
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROCESSES = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]


def contents(path: pathlib.Path) -> dict[str, bytes]:
    """Returns the files of a folder by name, or a file."""
    paths = path.iterdir() if path.is_dir() else [path]
    return {one.name if path.is_dir() else "": one.read_bytes() for one in paths}


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
