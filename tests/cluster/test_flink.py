"""Both jobs on a Flink cluster: the bytes of a local run, a machine that fails, Ctrl-C, and one line for bad input."""

import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import elmo_tf
from tests import checks
from tests.beam.common import LOOPBACK, contents, listening
from tests.cluster.commands import done, finished, refused, start, wait_for
from tests.cluster.engine import ROOT
from tests.cluster.flink import Cluster

pytestmark = pytest.mark.cluster


def test_preprocess_writes_the_bytes_of_a_local_run(cluster, text, tmp_path):
    command = ["preprocess", "--input", text, "--shards=5", "--min-count=2", "--heldout-fraction=0.2"]
    for name, options in (("local", []), ("cluster", cluster.options)):
        done(*command, f"--output={tmp_path / name}", f"--heldout={tmp_path / name}-heldout", *options)
    for split in ("", "-heldout"):
        assert contents(tmp_path / f"cluster{split}") == contents(tmp_path / f"local{split}")


def test_embed_writes_the_bytes_of_a_local_run(cluster, savedmodel, sentences, tmp_path):
    command = ["embed", "--model", savedmodel.path, "--input", sentences]
    for name, options in (("local", []), ("cluster", cluster.options)):
        done(*command, f"--output={tmp_path / name}", *options)
    assert contents(tmp_path / "cluster") == contents(tmp_path / "local")


def test_a_program_of_ones_own_embeds_with_mltransform(cluster, savedmodel, sentences, tmp_path):
    command = ["--model", savedmodel.path, "--input", sentences, "--output", tmp_path / "vectors", *cluster.options]
    program = [sys.executable, ROOT / "examples" / "beam_embeddings.py"]
    earlier = len(cluster.jobs())
    ended = subprocess.run([*program, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(cluster.jobs()) == earlier + 1
    lines = [line for path in tmp_path.glob("vectors-*.jsonl") for line in path.read_text().splitlines()]
    vectors = {row["text"]: row["vector"] for row in map(json.loads, lines)}
    texts = sentences.read_text().splitlines()
    assert sorted(vectors) == sorted(texts)
    expected = elmo_tf.load(savedmodel.path).encode(texts, pool="mean")
    np.testing.assert_allclose([vectors[text] for text in texts], expected, **checks.TOLERANCE)


def shards(output: pathlib.Path) -> list[pathlib.Path]:
    return list(output.glob("shard-*"))


@pytest.mark.parametrize("returns", [True, False], ids=["and comes back", "for good"])
def test_a_machine_that_fails_changes_nothing(request, large, large_records, tmp_path, returns):
    cluster: Cluster = request.getfixturevalue("patient_cluster" if returns else "cluster")
    command = ["preprocess", "--input", large, "--shards=12"]
    output = tmp_path / "cluster"
    process = start(*command, f"--output={output}", *cluster.options)
    wait_for(lambda: bool(shards(output)), process)
    cluster.machines[0].kill()
    if returns:
        cluster.machines[0].start()
    err = finished(process)
    if returns:
        assert process.returncode == 0, err
    else:
        assert process.returncode == 1
        assert err.splitlines()[-1].startswith("elmo-tf: error: the remote job failed: ")
        assert err.splitlines()[-1].endswith("; run the same command again")
        assert "Traceback" not in err
        cluster.machines[0].start()
        cluster.wait_for_machines()
        err = done(*command, f"--output={output}", *cluster.options)
        assert "continuing an earlier run" in err
    assert contents(output) == large_records


def test_ctrl_c_cancels_the_remote_job_and_no_process_of_the_command_listens_beyond_this_machine(
    cluster: Cluster, large, large_records, tmp_path
):
    command = ["preprocess", "--input", large, "--shards=12"]
    output, addresses = tmp_path / "cluster", set()
    process = start(*command, f"--output={output}", *cluster.options)
    wait_for(lambda: addresses.update(listening(process)) or bool(shards(output)), process)
    os.killpg(process.pid, signal.SIGINT)
    err = finished(process)
    assert process.returncode == 130
    expected = "elmo-tf: interrupted; the remote job is cancelled; run the same command again"
    assert err.splitlines()[-1] == expected
    assert "Traceback" not in err
    assert addresses <= LOOPBACK
    assert cluster.jobs()[0]["state"] == "CANCELED"
    assert "continuing an earlier run" in done(*command, f"--output={output}", *cluster.options)
    assert contents(output) == large_records


def test_while_the_job_of_a_killed_command_runs_its_output_is_refused_to_another_and_the_same_one_completes(
    cluster: Cluster, large, large_records, tmp_path
):
    command, output = ["preprocess", "--input", large, "--shards=12"], tmp_path / "cluster"
    process = start(*command, f"--output={output}", *cluster.options)
    wait_for(lambda: bool(shards(output)), process)
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)
    assert cluster.jobs()[0]["state"] == "RUNNING"
    line = refused(*command, "--min-count=2", f"--output={output}", *cluster.options)
    assert (
        "is the unfinished output of different options: min_count None, now 2; run that command again, or del" in line
    )
    done(*command, f"--output={output}", *cluster.options)  # starts once the slots are free: the old job ends by itself
    assert contents(output) == large_records


def test_bad_input_is_one_line_and_leaves_nothing(cluster: Cluster, tmp_path):
    text = tmp_path / "a.gz"
    text.write_bytes(gzip.compress(b"".join(b"number %d\n" % number for number in range(9000)))[:-9])
    line = refused("preprocess", "--input", text, f"--output={tmp_path / 'x'}", *cluster.options)
    assert "a.gz: cannot be decompressed " in line
    assert os.listdir(tmp_path) == ["a.gz"]


@contextlib.contextmanager
def other_machines(cluster: Cluster, **settings: object) -> Iterator[None]:
    for machine in cluster.machines:
        machine.restart(**settings)
    cluster.wait_for_machines()
    try:
        yield
    finally:
        for machine in cluster.machines:
            machine.restart()
        cluster.wait_for_machines()


def test_workers_without_this_package_are_named(cluster: Cluster, text, tmp_path):
    with other_machines(cluster, lacks_package=True):
        line = refused("preprocess", f"--input={text}", f"--output={tmp_path / 'x'}", *cluster.options)
    assert line.startswith("the workers cannot import elmo_tf")


def test_paths_that_workers_do_not_see_are_named(cluster: Cluster, savedmodel, sentences, tmp_path):
    hidden, shared = tmp_path / "hidden", tmp_path / "shared"
    for folder in (hidden, shared):
        folder.mkdir()
        (folder / "a.txt").write_bytes(sentences.read_bytes())
    probe = subprocess.run(["unshare", "--mount", "--map-root-user", "true"], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("needs the right to hide a folder from a process")
    model = shutil.copytree(savedmodel.path, hidden / "model")
    embed = ["embed", "--format=tfrecord", "--shards=2"]
    cases = {
        "input": (["preprocess", f"--input={hidden / 'a.txt'}", f"--output={shared / '1'}"], hidden / "a.txt"),
        "output": (["preprocess", f"--input={shared / 'a.txt'}", f"--output={hidden / '2'}"], hidden / "2"),
        "model": ([*embed, f"--model={model}", f"--input={shared / 'a.txt'}", f"--output={shared / '3'}"], model),
    }
    with other_machines(cluster, hidden=hidden):
        lines = {name: refused(*command, *cluster.options) for name, (command, _) in cases.items()}
    for name, (_, path) in cases.items():
        assert str(path) in lines[name], lines
        assert "all workers" in lines[name], lines
