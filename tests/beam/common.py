"""What the tests of both jobs share: contents of folders, commands, interrupts, a disk that is soon full."""

import contextlib
import itertools
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

from elmo_tf.corpus import corpora, reading, sentences
from tests.helpers import ROOT, descendants

HAS_PROC = os.path.exists("/proc/net/tcp")  # Linux
_LISTENS = "0A"
# 127.0.0.1, the same as an IPv6 address, and ::1.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
SETTINGS = sentences.Settings("whitespace", sentences.SENTENCE)
PROCESSES = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]


def contents(path: pathlib.Path) -> dict[str, bytes]:
    paths = path.iterdir() if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in paths}


def files(folder: pathlib.Path) -> dict[str, bytes]:
    """Returns the files in a folder, at any depth, by their paths in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def irregular(info: dict[str, Any]) -> dict[str, int]:
    """Returns how often each rule for irregular text applied, of those that did."""
    return {name: rule["count"] for name, rule in info["irregular"].items() if rule["count"]}


def read_sentences(
    paths: list[str], num_tasks: int = 1, numbered: bool = True, **settings: object
) -> list[tuple[str, list[bytes]]]:
    """Returns the source's name and the tokens of each sentence, read in some tasks with `SETTINGS` and others."""
    reader = sentences.Reader(SETTINGS._replace(**settings), numbered)
    files = reading.inspect(corpora.match(paths), settings.get("tokenizer", "whitespace"))
    tasks = (corpora.plan_in_order if numbered else corpora.plan)(files, num_tasks)
    batches = [batch for task in tasks for batch in reader.read(task)]
    return [(os.path.basename(batch.source), words) for batch in batches for words in batch.sentences]


def start(*arguments: object, **variables: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "elmo_tf.cli", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as in a shell, where Ctrl-C reaches every process of the command's group
    )


@contextlib.contextmanager
def interrupted(
    owner: object, name: str, after: int = 0, when: Callable[..., bool] = lambda *_: True
) -> Iterator[pytest.ExceptionInfo]:
    """Has Ctrl-C end the block at the `after`-th call of a function, from 0, of those `when` holds for."""
    call, count = getattr(owner, name), itertools.count()

    def counted(*arguments: Any) -> Any:
        if when(*arguments) and next(count) == after:
            signal.raise_signal(signal.SIGINT)
        return call(*arguments)

    with mock.patch.object(owner, name, counted), pytest.raises(KeyboardInterrupt) as caught:
        yield caught


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


def listening(process: subprocess.Popen) -> set[str]:
    """Returns the addresses, as Linux writes them, on which a process and its descendants accept TCP connections."""
    sockets = set()
    for pid in (process.pid, *descendants(process.pid)):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(entry))
    tables = [pathlib.Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()]
    return {row[1].partition(":")[0] for row in rows if row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets}
