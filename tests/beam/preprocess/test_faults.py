"""Killed runs, full disks, two runs at once: nothing looks finished that is not, and the same command completes."""

import errno
import functools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import time

import pytest

from elmo_tf.beam.preprocess import counts, shards
from elmo_tf.corpus import reading
from elmo_tf.errors import InputError
from elmo_tf.files import stores
from tests.beam.common import PROCESSES, contents, interrupted, start
from tests.helpers import slow

OPTIONS = ["--shards=6", "--min-count=2"]
HINT = "run the same command again"


def finished_shards(output: pathlib.Path) -> list[pathlib.Path]:
    return sorted(output.glob("shard-*.tfrecord"))


@pytest.mark.slow
def test_a_run_killed_at_ten_moments_writes_the_same_bytes_in_the_end(corpus, process, tmp_path):
    paths = corpus(b"".join(b"word%d is number%d of sentence%d\n" % (n % 997, n % 13, n) for n in range(60_000)))
    whole = process(paths, *OPTIONS, output="whole")
    output, choose = tmp_path / "killed", random.Random(0)
    for moment in range(10):
        run = start("preprocess", "--input", *paths, "--output", output, *OPTIONS)
        while run.poll() is None and not (output / "plan.json").exists():
            time.sleep(0.01)
        time.sleep(choose.random() * moment / 5)
        run.kill()
        run.communicate()
        if run.returncode != -signal.SIGKILL:
            break
        assert moment == 0 or not (output / "_SUCCESS").exists() or (output / "plan.json").exists()
    if (output / "plan.json").exists():
        process(paths, *OPTIONS, output="killed")
    assert contents(output) == contents(whole)


def test_two_runs_of_one_command_at_once_end_with_the_same_files(corpus, process, tmp_path):
    paths = corpus(b"".join(b"word%d is in sentence%d\n" % (n % 997, n) for n in range(8_000)))
    runs = [start("preprocess", "--input", *paths, "--output", tmp_path / "both", *OPTIONS) for _ in range(2)]
    ends = [(run.communicate(timeout=120)[1].splitlines()[-1], run.returncode) for run in runs]
    refused = rf"elmo-tf: error: {tmp_path}/both: (is|was deleted, or) finished.*"
    # The faster run may end before the other one begins or ends.
    assert all(code == 0 or (code == 1 and re.fullmatch(refused, line)) for line, code in ends), ends
    assert any(code == 0 for _, code in ends)
    assert contents(tmp_path / "both") == contents(process(paths, *OPTIONS, output="whole"))


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_folder_that_another_run_finishes_stays_as_it_is_and_one_that_is_deleted_is_not_made_again(
    corpus, process, tmp_path, monkeypatch, is_finished
):
    paths = corpus(b"a b c\n" * 1000)
    whole, do = process(paths, output="whole") if is_finished else None, counts.CountTask.process_task

    def finish(self, task):
        shutil.rmtree(tmp_path / "output")
        if is_finished:
            shutil.copytree(whole, tmp_path / "output")
        return do(self, task)

    monkeypatch.setattr(counts.CountTask, "process_task", finish)
    problem = "was deleted, or finished by another run, before this run finished"
    with pytest.raises(stores.WriteError, match=rf"/output: {problem}; {HINT}$"):
        process(paths)
    assert (tmp_path / "output").exists() == is_finished
    assert not is_finished or contents(tmp_path / "output") == contents(whole)


def test_a_folder_that_workers_do_not_see_is_an_error_and_not_left(corpus, process, tmp_path, monkeypatch):
    status = stores.status

    def unseen(path: str):
        return status(f"{path}.none" if path.endswith("plan.json") else path)

    monkeypatch.setattr(stores, "status", unseen)
    with pytest.raises(
        stores.ReadError, match=r"/plan.json.none: No such file .*; all workers need it under this path"
    ):
        process(corpus(b"a b c\n" * 1000))
    assert os.listdir(tmp_path) == ["corpus"]


def test_output_in_the_folder_of_the_input_is_not_read_as_text(corpus, process):
    folder = pathlib.Path(corpus(b"".join(b"a b %d\n" % number for number in range(1000)))[0]).parent
    options = ["--shards=3", f"--heldout={folder / 'heldout'}", "--heldout-fraction=0.5"]
    (folder / "b.txt").write_bytes(b"d e\n")
    with interrupted(shards.WriteTask, "process_task", after=2):
        process([str(folder)], *options, output="corpus/output")
    output = process([str(folder)], *options, output="corpus/output")
    assert [file["name"] for file in json.loads((output / "info.json").read_text())["inputs"]] == ["0.txt", "b.txt"]
    for path in output.iterdir():
        if path.name != "plan.json":
            path.unlink()
    (output / "plan.json").write_bytes(b"{}")
    with pytest.raises(InputError, match=r"^input: all these files are in the output folders"):
        process([str(output)], output="corpus/output")


def test_a_failing_disk_under_the_input_is_one_error(corpus, process, monkeypatch):
    paths = corpus(b"a b c\n" * 1000, b"d\n")
    opened = stores.open_file

    def failing(path: str):
        if path == paths[1]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path)

    inspect = reading.inspect
    with monkeypatch.context() as patch, pytest.raises(stores.ReadError) as caught:
        # It fails once the beginnings of all files have been read.
        fail = functools.partial(patch.setattr, stores, "open_file", failing)
        patch.setattr(reading, "inspect", lambda *given: (inspect(*given), fail())[0])
        process(paths, "--shards=3")
    assert re.fullmatch(rf"cannot read /.*/1.txt: Input/output error; {HINT}", str(caught.value))
    assert contents(process(paths, "--shards=3")) == contents(process(paths, "--shards=3", output="fresh"))


@pytest.mark.parametrize("workers", [[], slow(PROCESSES)], ids=["alone", "processes"])
def test_sigint_ends_like_any_command_and_the_same_one_completes(corpus, process, tmp_path, workers):
    paths = corpus(b"some words in a sentence\n" * 50_000)
    run = start("preprocess", "--input", *paths, "--output", tmp_path / "output", "--shards=8", *workers)
    while not finished_shards(tmp_path / "output") and run.poll() is None:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C in a terminal: to workers as well
    err = run.communicate(timeout=60)[1]
    assert err.splitlines()[-1] == f"elmo-tf: interrupted; {HINT}"
    assert "Traceback" not in err
    assert run.returncode == 130
    assert not (tmp_path / "output" / "_SUCCESS").exists()
    assert contents(process(paths, "--shards=8")) == contents(process(paths, "--shards=8", output="whole"))
