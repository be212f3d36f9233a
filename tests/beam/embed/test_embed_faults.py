"""Embedding that is killed, runs out of disk or gets other options meanwhile; and worker processes."""

import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from elmo_tf.beam.embed import embed_step, job, vector_output
from elmo_tf.beam.running import journal
from elmo_tf.beam.text import filesystems
from elmo_tf.cli import jobs
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import checksums
from tests import checks
from tests.beam.common import PROCESSES, contents, interrupted, small_disk
from tests.helpers import ROOT, run_python, slow

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXT = b"".join(b"some words of sentence %d\n" % (number % 977) * (number % 3) + b"\n" for number in range(600))
# The command line with chunks of 4 kB, so that there are many of them.
SMALL = "import sys; from elmo_tf import cli; from elmo_tf.beam.embed import job; job._CHUNK_BYTES = 1 << 12\n"
SMALL += "if __name__ == '__main__': sys.exit(cli.main(sys.argv[1:]))\n"
KINDS = {
    "hdf5": (vector_output.Hdf5, []),
    "tfrecord": (vector_output.Shards, ["--format=tfrecord"]),
    "npy": (vector_output.Matrix, ["--format=npy", "--pool=max"]),
}


@pytest.fixture
def arguments(savedmodel, corpus, tmp_path):
    """Returns the arguments that embed `TEXT` to a path in the test's folder."""
    paths = corpus(TEXT)

    def make(output: str, *options: str) -> list[str]:
        return ["--savedmodel", str(savedmodel.path), "--input", *paths, f"--output={tmp_path / output}", *options]

    return make


@pytest.mark.parametrize("kind", [slow("hdf5"), "tfrecord", "npy"])
def test_what_is_whole_is_used_again_and_what_is_not_is_not(arguments, tmp_path, monkeypatch, kind):
    writer, options = KINDS[kind]
    monkeypatch.setattr(job, "_CHUNK_BYTES", 1 << 15)
    jobs.run("embed", arguments("whole", *options))
    write, written = writer.write, []
    monkeypatch.setattr(writer, "write", lambda self, chunk, _: written.append(chunk.number) or write(self, chunk, _))
    with interrupted(writer, "write", when=lambda self, chunk, _: chunk.number == 3) as caught:
        jobs.run("embed", arguments("output", *options))
    assert str(caught.value) == "interrupted; run the same command again to resume"
    assert written == [0, 1, 2]
    assert not (tmp_path / "output" / "_SUCCESS").exists()
    folder = tmp_path / ("output.unfinished" if kind == "hdf5" else "output")
    for file in (*folder.glob("shard-00001-of-*"), *folder.glob("_unfinished/rows-00001.*")):
        file.write_bytes(b"cut")  # by somebody else
    changes = {"--layers=top": "layers all, now top", "--batch-tokens=99": "batch_tokens 2048, now 99"}
    for option, difference in changes.items():
        with pytest.raises(InputError, match=rf": expected the command that .* found other options: {difference}\. "):
            jobs.run("embed", arguments("output", *options, option))
    written.clear()
    jobs.run("embed", arguments("output", *options))
    assert written == [*([] if kind == "hdf5" else [1]), *range(3, max(written) + 1)]
    assert contents(tmp_path / "output") == contents(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["corpus", "output", "whole"]


@pytest.mark.parametrize("change", ["model", slow("text")])
def test_another_model_or_text_does_not_resume_it(arguments, tmp_path, change):
    given = arguments("output")
    given[1] = str(shutil.copytree(given[1], tmp_path / "model"))
    with interrupted(vector_output.Hdf5, "write"):
        jobs.run("embed", given)
    changed = pathlib.Path(given[3]) if change == "text" else next((tmp_path / "model" / "variables").glob("*.data*"))
    content = bytearray(changed.read_bytes())
    content[7] ^= 1
    changed.write_bytes(content)
    if change == "model":
        checksums.write(tmp_path / "model")  # not damaged: another one
    found = {"model": "another savedmodel", "text": "another input"}[change]
    with pytest.raises(InputError, match=rf"found other options: {found}\. .*delete .*output.unfinished$"):
        jobs.run("embed", given)
    assert (tmp_path / "output.unfinished").is_dir()


def test_workers_get_absolute_paths(arguments, savedmodel, corpus, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(job.Job, "run", lambda self, corpus: found.extend([self.savedmodel, corpus[0].path]) or {})
    monkeypatch.setattr(job, "summary", lambda *_: "")
    monkeypatch.chdir(tmp_path)
    given = arguments("output")
    given[1], given[3] = os.path.relpath(given[1]), os.path.relpath(given[3])
    jobs.run("embed", given)
    assert found == [str(savedmodel.path), str(tmp_path / "corpus" / "0.txt")]


def test_a_file_that_appears_at_the_output_does_not_cost_what_is_done(arguments, tmp_path):
    with interrupted(vector_output.Hdf5, "write"):
        jobs.run("embed", arguments("output"))
    (tmp_path / "output").touch()
    with pytest.raises(InputError, match=r"/output: expected a file that does not exist yet"):
        jobs.run("embed", arguments("output"))
    assert list((tmp_path / "output.unfinished" / "_unfinished").glob("vectors*.hdf5"))


@pytest.mark.slow
def test_without_its_frame_an_hdf5_file_is_written_again(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "_CHUNK_BYTES", 1 << 15)
    jobs.run("embed", arguments("whole"))
    with interrupted(vector_output.Hdf5, "finish"):
        jobs.run("embed", arguments("output"))
    (vectors,) = (tmp_path / "output.unfinished" / "_unfinished").glob("vectors*.hdf5")
    vectors.write_bytes(b"cut")
    jobs.run("embed", arguments("output"))
    assert contents(tmp_path / "output") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_killed_at_any_moment_is_resumed(arguments, tmp_path, monkeypatch):
    command = ["-c", SMALL, "embed"]
    with monkeypatch.context() as patch:
        patch.setattr(job, "_CHUNK_BYTES", 1 << 12)
        jobs.run("embed", arguments("whole"))
    notes = tmp_path / "output.unfinished" / "_unfinished"
    choose = random.Random(0)
    done = 0
    for _ in range(2):
        run = subprocess.Popen([sys.executable, *command, *arguments("output")], cwd=ROOT, stderr=subprocess.DEVNULL)
        while len(list(notes.glob("embed-[0-9]*.json"))) <= done and run.poll() is None:
            time.sleep(0.01)
        time.sleep(choose.random() / 20)
        assert run.poll() is None, "it was too fast to be killed"
        run.kill()
        run.wait()
        assert not (tmp_path / "output").exists()
        done = len(list(notes.glob("embed-[0-9]*.json")))
    last = run_python(*command, *arguments("output"))
    assert "resuming an earlier run; its finished files are kept" in last.stderr
    assert contents(tmp_path / "output") == contents(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["corpus", "output", "whole"]


@pytest.mark.parametrize("kind", ["hdf5", slow("tfrecord")])
def test_a_full_disk_is_reported_and_more_room_is_enough_to_resume(arguments, tmp_path, monkeypatch, kind, caplog):
    options = [*KINDS[kind][1], "--layers=all"]
    monkeypatch.setattr(job, "_CHUNK_BYTES", 1 << 17)
    with small_disk(tmp_path / "disk", {"hdf5": "600k", "tfrecord": "400k"}[kind]) as disk:
        expected = r"^cannot write /.*: No space left on device; run the same command again to resume$"
        with pytest.raises(filesystems.WriteError, match=expected):
            jobs.run("embed", arguments("disk/output", *options))
        assert re.search(r"warning: the disk has room for only [0-9.]+ kB", caplog.text)
        assert not (disk / "output" / "_SUCCESS").exists()
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        jobs.run("embed", arguments("disk/output", *options))
        jobs.run("embed", arguments("whole", *options))
        assert contents(disk / "output") == contents(tmp_path / "whole")
        assert os.listdir(disk) == ["output"]


def test_a_disk_too_small_for_the_frame_alone_is_reported(tmp_path):
    with small_disk(tmp_path / "disk", "100k") as disk:
        (disk / "_unfinished").mkdir()
        output, layout = vector_output.Hdf5(journal.Journal(str(disk), "run")), vector_output.Layout((3, 16), "float32")
        with pytest.raises(filesystems.WriteError, match=r"^cannot write /.*vectors.run.hdf5: No space left"):
            output.make_frame([([b"%d" % number for number in range(1000)], [1] * 1000)], layout, {})
        assert not output.is_framed()


@pytest.mark.slow
def test_worker_processes_make_the_same_vectors(arguments, tmp_path):
    done = run_python("-c", SMALL, "embed", *arguments("two", *PROCESSES))
    assert done.stdout == ""
    assert re.fullmatch(r"[0-9,]+ tokens in .* tokens/s", done.stderr.splitlines()[-1])
    jobs.run("embed", arguments("one"))
    with h5py.File(tmp_path / "one") as one, h5py.File(tmp_path / "two") as two:
        assert one.keys() == two.keys()
        for name in itertools.islice(one, 100):
            np.testing.assert_allclose(one[name], two[name], **checks.TOLERANCE)


def test_a_model_that_a_worker_cannot_load_does_not_cost_what_is_done(savedmodel, tmp_path):
    """Its files were intact when the job began; memory may be short."""
    model = shutil.copytree(savedmodel.path, tmp_path / "model")
    (model / "saved_model.pb").write_bytes(b"no graph")
    checksums.write(model)
    settings = embed_step.Settings(str(model), "all", vector_output.Layout((3, 16), "float32"), 99, None)
    with pytest.raises(filesystems.ReadError, match=r"^cannot load the SavedModel: expected an intact SavedModel, "):
        settings.load()


def test_a_link_in_the_place_of_the_unfinished_file_is_not_followed(notes, tmp_path):
    output, target = vector_output.Hdf5(notes), tmp_path / "target"
    target.write_bytes(b"precious")
    os.symlink(target, output.path)
    output.make_frame([([b"0"], [2])], vector_output.Layout((3, 16), "float32"), {})
    assert not os.path.islink(output.path)
    assert target.read_bytes() == b"precious"
