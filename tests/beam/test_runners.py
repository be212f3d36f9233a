"""The same bytes with every runner that works offline, and a clear error from each when something fails."""

import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability import local_job_service
from apache_beam.utils import interactive_utils

from elmo_tf.beam import beam_internals, runners
from elmo_tf.beam.preprocess import PreprocessConfig, run, shards
from elmo_tf.cli import jobs
from elmo_tf.corpus import corpora
from elmo_tf.errors import InputError
from tests.beam.common import HAS_PROC, LOOPBACK, PROCESSES, contents, listening, start
from tests.helpers import descendants, slow

WORKER = "beam:env:harness_subprocess_python:v1"


def finished(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert out == ""
    return err


@pytest.fixture(scope="module")
def job_service():
    """Beam's portable job service on loopback addresses, in this process; it starts workers as further ones."""
    beam_internals.listen_on_loopback()
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
    """The output of the default runner."""
    folder = tmp_path_factory.mktemp("expected")
    jobs.run("preprocess", options(text, folder))
    return [contents(folder / split) for split in ("train", "heldout")]


def options(text: list[pathlib.Path], folder: pathlib.Path) -> list[str]:
    outputs = [f"--output={folder / 'train'}", f"--heldout={folder / 'heldout'}", "--heldout-fraction=0.2"]
    return ["--input", *map(str, text), *outputs, "--shards=5", "--min-count=2", "--seed=3"]


RUNNERS = {
    "default": [],
    "threads": ["--direct_num_workers=2", "--direct_running_mode=multi_threading"],
    "processes": PROCESSES,
    "bundles": ["--runner=BundleBasedDirectRunner"],
}


@pytest.fixture
def beam_options(runner, request) -> list[str]:
    return request.getfixturevalue("job_service") if runner == "portable" else RUNNERS[runner]


@pytest.mark.parametrize("runner", ["processes", "bundles", slow("threads"), slow("portable")])
def test_output_is_the_same_bytes_on_every_runner_and_no_job_listens_beyond_this_machine(
    text, expected, tmp_path, runner, beam_options
):
    process = start("preprocess", *options(text, tmp_path), *beam_options)
    addresses = set()
    while process.poll() is None and HAS_PROC:
        addresses |= listening(process)
        time.sleep(0.05)
    err = finished(process)
    assert [contents(tmp_path / split) for split in ("train", "heldout")] == expected
    assert re.search(r"^[0-9,]+ tokens in .* tokens/s$", err, re.MULTILINE)
    assert addresses <= LOOPBACK
    assert addresses or runner not in ("threads", "processes") or not HAS_PROC
    noise = [line for line in err.splitlines() if re.search("warn|Traceback", line, re.IGNORECASE)]
    assert noise == [] or runner in ("processes", "portable")  # their workers log when a slow machine ends them


def test_a_job_in_a_notebook_needs_no_pandas(text, expected, tmp_path, monkeypatch):
    """Beam imports its interactive runner there, which fails without pandas, and with pandas 3."""
    shell = types.SimpleNamespace(config={"IPKernelApp": {}}, execution_count=1)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "pandas", None)
    jobs.run("preprocess", options(text, tmp_path))
    assert [contents(tmp_path / split) for split in ("train", "heldout")] == expected
    assert interactive_utils.is_in_notebook()


def damaged(tmp_path: pathlib.Path) -> list[object]:
    """Returns the options that preprocess a file whose end is damaged, which only a worker sees."""
    content = gzip.compress(b"".join(b"number %d\n" % number for number in range(9000)))
    (tmp_path / "a.gz").write_bytes(content[:-9])
    return ["preprocess", "--input", tmp_path / "a.gz", f"--output={tmp_path / 'output'}"]


@pytest.mark.parametrize("runner", ["processes", "threads", *map(slow, ("default", "bundles", "portable"))])
def test_an_error_in_a_worker_is_one_line(tmp_path, runner, beam_options):
    process = start(*damaged(tmp_path), *beam_options)
    first, *between, last = finished(process).splitlines()
    assert process.returncode == 1
    assert first.startswith("reading 1 file, about ")
    assert between == [] or runner == "portable"  # Beam prints its traceback
    assert re.search(r"^elmo-tf: error: .*a.gz: cannot be decompressed ", last)
    assert os.listdir(tmp_path) == ["a.gz"]


def test_an_error_whose_text_names_an_interrupt_is_an_error(tmp_path):
    _, *arguments, _ = damaged(tmp_path)
    (tmp_path / "a.gz").rename(tmp_path / "KeyboardInterrupt.gz")
    with pytest.raises(InputError, match=r"/KeyboardInterrupt.gz: cannot be decompressed "):
        jobs.run("preprocess", [arguments[0], str(tmp_path / "KeyboardInterrupt.gz"), f"--output={tmp_path / 'out'}"])


def running_workers(process: subprocess.Popen, text: pathlib.Path, output: pathlib.Path) -> list[int]:
    """Waits until shards are written; returns the ids of the worker processes."""
    while not list(output.glob("shard-*")) and process.poll() is None:
        time.sleep(0.02)
    # The first processes belong to Python's `multiprocessing`; workers are forked from one of them.
    return descendants(process.pid)[-2:]


def test_threads_of_a_users_program_report_errors_as_before_once_a_job_has_ended():
    before = threading.excepthook
    with runners.configured_pipeline(runners.parse(PROCESSES), "elmo_tf.beam.preprocess"):
        assert threading.excepthook is not before
    assert threading.excepthook is before


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_job_in_one_line_and_the_same_command_completes(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"some words in a sentence\n" * 400_000)
    arguments = ["preprocess", "--input", tmp_path / "a.txt", "--shards=8", f"--output={tmp_path / 'output'}"]
    process = start(*arguments, *PROCESSES)
    os.kill(running_workers(process, tmp_path / "a.txt", tmp_path / "output")[-1], signal.SIGKILL)
    err = finished(process).splitlines()
    assert process.returncode == 1
    assert err[-1] == "elmo-tf: error: a worker process died; run the same command again"
    assert not [line for line in err if "Traceback" in line or "Error" in line]
    assert not (tmp_path / "output" / "_SUCCESS").exists()
    assert "continuing an earlier run" in finished(start(*arguments)).splitlines()
    whole = tmp_path / "whole"
    finished(start(*arguments[:-1], f"--output={whole}"))
    assert contents(tmp_path / "output") == contents(whole)
    assert json.loads((whole / "info.json").read_text())["tokens"] == 2_000_000


@pytest.mark.parametrize("number", [signal.SIGTERM, slow(signal.SIGINT)])
def test_a_command_that_is_terminated_removes_its_temporary_files(tmp_path, number):
    (tmp_path / "a.txt").write_bytes(b"some words in a sentence\n" * 400_000)
    arguments = ["preprocess", "--input", tmp_path / "a.txt", "--shards=8", f"--output={tmp_path / 'output'}"]
    with tempfile.TemporaryDirectory() as temporary:  # its path is short, as those of sockets have to be
        process = start(*arguments, *PROCESSES, TMPDIR=temporary)
        running_workers(process, tmp_path / "a.txt", tmp_path / "output")
        assert os.listdir(temporary) != []
        process.send_signal(number)
        assert finished(process).splitlines()[-1] == "elmo-tf: interrupted; run the same command again"
        assert process.returncode == 130
        assert os.listdir(temporary) == []


def test_a_pipeline_that_does_not_run_leaves_no_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputError), runners.configured_pipeline(runners.parse([]), "elmo_tf.beam.preprocess"):
        assert len(os.listdir(tmp_path)) == 1
        raise InputError("a", "b")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_workers_end_with_a_command_that_is_killed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"some words in a sentence\n" * 400_000)
    arguments = ["preprocess", "--input", tmp_path / "a.txt", "--shards=8", f"--output={tmp_path / 'output'}"]
    process = start(*arguments, *PROCESSES)
    workers = running_workers(process, tmp_path / "a.txt", tmp_path / "output")
    assert len(workers) == 2
    process.kill()
    process.communicate(timeout=10)  # they have its stdout
    end = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{worker}") for worker in workers):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_graph_that_any_runner_gets_has_side_inputs_and_does_not_grow_with_the_text(folder):
    """What Dataflow and Spark would get; neither was run."""
    count = 20_000
    files = [corpora.TextFile(f"/corpus/some/folder/{number:06d}.txt", 10_000, 0) for number in range(count)]
    config = PreprocessConfig(input="/corpus", output=folder.path)
    output = shards.Output({"train": folder}, config.settings(), count, 1)
    pipeline = beam.Pipeline(options=runners.parse(["--runner=SparkRunner", "--spark_submit_uber_jar"]))
    run.build(pipeline, config, output, files, None)
    proto = pipeline.to_runner_api()
    assert len(proto.SerializeToString()) < 500_000
    steps = {transform.unique_name: transform for transform in proto.components.transforms.values()}
    last = steps["WriteShards"]
    assert len(beam_runner_api_pb2.ParDoPayload.FromString(last.spec.payload).side_inputs) == 1
