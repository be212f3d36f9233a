"""The same bytes with every runner that works offline, and a clear error from each when something fails."""

import contextlib
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from unittest import mock

import pytest
from apache_beam.runners.portability import local_job_service

from elmo_tf.beam.running import loopback, processes, runner_options
from elmo_tf.beam.text import filesystems
from elmo_tf.cli import jobs
from elmo_tf.errors import InputError
from tests.beam.common import PROCESSES, contents, start
from tests.helpers import descendants, slow

HAS_PROC = os.path.exists("/proc/net/tcp")  # Linux
_LISTENS = "0A"
# 127.0.0.1, the same as an IPv6 address, and ::1.
_LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
WORKER = "beam:env:harness_subprocess_python:v1"


def finished(process: subprocess.Popen) -> str:
    """Returns what a command printed on stderr; stdout must be empty."""
    out, err = process.communicate(timeout=120)
    assert out == ""
    return err


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


@pytest.fixture(scope="module")
def job_service():
    """Beam's portable job service on loopback addresses, in this process; it starts workers as further ones."""
    loopback.restrict()
    service = local_job_service.LocalJobServicer()
    yield [
        "--runner=PortableRunner",
        f"--job_endpoint=localhost:{service.start_grpc_server()}",
        f"--environment_type={WORKER}",
        f"--environment_config={sys.executable} -m apache_beam.runners.worker.sdk_worker_main",
    ]
    service.stop()


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> list[pathlib.Path]:
    folder = tmp_path_factory.mktemp("text")
    lines = [f"word{n % 97} is number{n % 13} of sentence{n}\n".encode() for n in range(2000)]
    (folder / "a.txt").write_bytes(b"".join(lines[:1500]))
    (folder / "b.gz").write_bytes(gzip.compress(b"".join(lines[1500:])))
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def expected(text, tmp_path_factory):
    """The output of the default runner, in the order of the text and shuffled."""
    made = {}
    for order in ("", "--shuffle"):
        folder = tmp_path_factory.mktemp("expected")
        jobs.run("preprocess", options(text, folder, order))
        made[order] = [contents(folder / split) for split in ("train", "heldout")]
    return made


def options(text: list[pathlib.Path], folder: pathlib.Path, order: str) -> list[str]:
    outputs = [f"--output={folder / 'train'}", f"--heldout={folder / 'heldout'}", "--heldout-fraction=0.2"]
    return ["--input", *map(str, text), *outputs, "--shards=5", "--min-count=2", "--seed=3", *filter(None, [order])]


RUNNERS = {
    "default": ([], ""),
    "threads": (["--direct_num_workers=2", "--direct_running_mode=multi_threading"], ""),
    "processes": (PROCESSES, "--shuffle"),
    "portable": (None, ""),
}


FULL, DAMAGED = "cannot write /a: No space left on device", "cannot read /a: expected b, found c"
# Texts of exceptions, as runners pass them on.
TEXTS = {
    "RuntimeError: Traceback ...\n  raise ...\nelmo_tf.errors.InputError: input: expected text, found none: /x": (
        InputError("input", "text", "none: /x")
    ),
    # Beam adds the step to the first argument, and raises the error again.
    "RuntimeError: elmo_tf.errors.InputError: a.txt: expected UTF-8 text, found UTF-16\n\nDuring.\n"
    "elmo_tf.errors.InputError: a.txt [while running 'W']: expected UTF-8 text, found UTF-16\n\n": (
        InputError("a.txt", "UTF-8 text", "UTF-16")
    ),
    "RuntimeError: b'...\\nInputError: input: expected a, found b in /it, found c [while running \\'W\\']\\n'": (
        InputError("input", "a", "b in /it, found c [while running \\'W\\']")
    ),
    "InputError: input: expected UTF-8 text, found UTF-16: /corpus: expected, found InputError: it/a.txt": (
        InputError("input", "UTF-8 text", "UTF-16: /corpus: expected, found InputError: it/a.txt")
    ),
    f"RuntimeError: elmo_tf.filesystems.ReadError: {DAMAGED} [while running 'A']": filesystems.ReadError(DAMAGED),
    "InputError: /corpus\\news.gz: expected text, found none": InputError("/corpus\\news.gz", "text", "none"),
    f"WriteError: {FULL}": filesystems.WriteError(FULL),
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_error_of_a_worker_keeps_its_parts(text):
    found, expected = runner_options.own_error(text), TEXTS[text]
    assert (type(found), found.args, str(found)) == (type(expected), expected.args, str(expected))


def test_an_exception_of_another_kind_is_none_of_ours():
    assert runner_options.own_error("ValueError: expected 1, found 2") is None


# Which of the two comes first depends on the moment.
@pytest.mark.parametrize("text", [f"bundle failed: {processes.DIED}", "Channel closed prematurely."])
def test_a_dead_worker_is_one_line_whoever_notices_it(tmp_path, text):
    pipeline = mock.Mock(options=runner_options.parse([])[0], run=mock.Mock(side_effect=RuntimeError(text)))
    with pytest.raises(ChildProcessError, match=r"^a worker process died$"):
        runner_options.execute(pipeline, str(tmp_path / "note"))


@pytest.fixture
def beam_options(runner, request) -> list[str]:
    return request.getfixturevalue("job_service") if runner == "portable" else RUNNERS[runner][0]


@pytest.mark.parametrize("runner", ["threads", "processes", slow("portable")])
def test_output_is_the_same_bytes_on_every_runner_and_no_job_listens_beyond_this_machine(
    text, expected, tmp_path, runner, beam_options
):
    order = RUNNERS[runner][1]
    process = start("preprocess", *options(text, tmp_path, order), *beam_options)
    addresses = set()
    while process.poll() is None and HAS_PROC:
        addresses |= listening(process)
        time.sleep(0.05)
    err = finished(process)
    assert [contents(tmp_path / split) for split in ("train", "heldout")] == expected[order]
    assert re.search(r"^[0-9,]+ tokens in .* tokens/s$", err, re.MULTILINE)
    assert addresses <= _LOOPBACK
    assert addresses or runner == "portable" or not HAS_PROC  # which starts no server in this process
    noise = [line for line in err.splitlines() if "WARN" in line or "Traceback" in line]
    assert noise == [] or runner in ("processes", "portable")  # whose workers report how a slow machine ended them


@pytest.mark.parametrize("name", ["DirectRunner", "direct", "PrismRunner", "DataflowRunner"])
def test_a_runner_that_starts_prism_or_was_never_run_is_refused(name):
    options, _ = runner_options.parse([f"--runner={name}"])
    with pytest.raises(InputError, match=rf"^runner: expected one of FnApiRunner, .*, found {name}$"):
        runner_options.make_pipeline(options)


@pytest.mark.parametrize("runner", ["default", "processes", slow("threads"), slow("portable")])
def test_an_error_in_a_worker_is_one_line(tmp_path, runner, beam_options):
    (tmp_path / "a.txt").write_bytes("a b\n".encode("utf-16"))
    given = ["--input", tmp_path / "a.txt", f"--output={tmp_path / 'output'}"]
    process = start("preprocess", *given, *beam_options)
    first, *between, last = finished(process).splitlines()
    assert process.returncode == 1
    assert first == "reading 1 file, 0.0 kB of text"
    assert between == [] or runner in ("threads", "portable")  # of which Beam prints the traceback
    assert re.search(r"^elmo-tf: error: .*a.txt: expected UTF-8 text, found UTF-16", last)
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_job_and_the_same_command_resumes(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"some words in a sentence\n" * 400_000)
    arguments = ["preprocess", "--input", tmp_path / "a.txt", "--shards=8", f"--output={tmp_path / 'output'}"]
    process = start(*arguments, *PROCESSES)
    notes = tmp_path / "output" / "_unfinished"
    while not list(notes.glob("write-[0-9]*.json")) and process.poll() is None:
        time.sleep(0.02)
    # The last ones are the workers; the process that they were forked from comes before.
    os.kill(descendants(process.pid)[-1], signal.SIGKILL)
    err = finished(process).splitlines()
    assert process.returncode == 1
    # On a busy machine a thread of Beam's may say after it that its channel was closed.
    assert "elmo-tf: error: a worker process died; run the same command again to resume" in err[-9:]
    assert not (tmp_path / "output" / "_SUCCESS").exists()
    numbers = [note.name[6:11] for note in notes.glob("write-[0-9]*.json")]
    noted = [tmp_path / "output" / f"shard-{number}-of-00008.tfrecord" for number in numbers]
    done = {path: path.stat().st_mtime_ns for path in noted}
    assert done
    assert "resuming an earlier run; its finished files are kept" in finished(start(*arguments)).splitlines()
    assert {path: path.stat().st_mtime_ns for path in done} == done  # used, not written again
    whole = tmp_path / "whole"
    finished(start(*arguments[:-1], f"--output={whole}"))
    assert contents(tmp_path / "output") == contents(whole)
    assert json.loads((whole / "info.json").read_text())["tokens"] == 2_000_000
