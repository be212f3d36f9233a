"""Embedding that is killed, runs out of disk or gets other options meanwhile; and worker processes."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from elmo_tf import engines
from elmo_tf.beam.embed import assembly, embed_task, run
from elmo_tf.cli import jobs
from elmo_tf.corpus import sentences
from elmo_tf.engines.numpy import NumpyEngine
from elmo_tf.errors import InputError
from elmo_tf.files import stores
from elmo_tf.records import vector_files, wire
from elmo_tf.savedmodel import checksums
from tests import checks
from tests.beam.common import PROCESSES, contents, interrupted, small_disk
from tests.helpers import flip, run_python, slow

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXT = b"".join(b"some words of sentence %d\n" % (number % 977) * (number % 3) + b"\n" for number in range(600))
# The command line with shards of 20 kB, so that there are many of them.
SMALL = "import sys; from elmo_tf import cli; from elmo_tf.beam.embed import run; run._SHARD_BYTES = 20_000\n"
SMALL += "if __name__ == '__main__': sys.exit(cli.main(sys.argv[1:]))\n"
KINDS = {"hdf5": [], "tfrecord": ["--format=tfrecord"], "npy": ["--format=npy", "--pool=max"]}


@pytest.fixture
def arguments(savedmodel, corpus, tmp_path):
    """Returns the arguments that embed `TEXT` to a path in the test's folder."""
    paths = corpus(TEXT)

    def make(output: str, *options: str) -> list[str]:
        return ["--model", str(savedmodel.path), "--input", *paths, f"--output={tmp_path / output}", *options]

    return make


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(run, "_SHARD_BYTES", 20_000)
    monkeypatch.setattr(run, "_SHARD_TOKENS", 300)


@pytest.mark.parametrize("kind", [slow("hdf5"), "tfrecord", "npy"])
def test_shards_that_are_there_are_left_out_and_another_plan_is_refused(
    arguments, tmp_path, monkeypatch, small_shards, kind
):
    options = KINDS[kind]
    jobs.run("embed", arguments("whole", *options))
    do, embedded = embed_task.EmbedTask._vectors, []
    monkeypatch.setattr(embed_task.EmbedTask, "_vectors", lambda *given: embedded.append(1) or do(*given))
    with interrupted(embed_task, "_write", after=3) as caught:
        jobs.run("embed", arguments("output", *options))
    assert str(caught.value) == "interrupted; run the same command again"
    assert not (tmp_path / "output" / "_SUCCESS").exists()
    folder = tmp_path / ("output.unfinished" if kind == "hdf5" else "output")
    there = sorted(folder.glob("shard-*"))
    assert len(there) == 3
    changes = {"--layers=top": "layers all, now top", "--batch-tokens=99": "batch_tokens 2048, now 99"}
    for option, difference in changes.items():
        with pytest.raises(InputError, match=rf": is the unfinished output of different options: {difference}"):
            jobs.run("embed", arguments("output", *options, option))
    total = int(there[0].name[15:20])
    embedded.clear()
    jobs.run("embed", arguments("output", *options))
    assert len(embedded) == total - 3
    assert contents(tmp_path / "output") == contents(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["corpus", "output", "whole"]


def cut_a_record(path: pathlib.Path) -> None:
    """Leaves a file without its last record, which is a TFRecord file as well."""
    with path.open("rb") as file:
        *_, last = wire.read_frames(file)
    os.truncate(path, path.stat().st_size - len(wire.frame(last)))


def test_damaged_shards_are_embedded_again(arguments, tmp_path, monkeypatch, small_shards, caplog):
    options = KINDS["tfrecord"]
    jobs.run("embed", arguments("whole", *options))
    with interrupted(embed_task, "_write", after=4):
        jobs.run("embed", arguments("output", *options))
    shards = sorted((tmp_path / "output").glob("shard-*"))
    flip(shards[0])
    cut_a_record(shards[1])
    os.truncate(shards[2], shards[2].stat().st_size - 6)
    jobs.run("embed", arguments("output", *options))
    assert contents(tmp_path / "output") == contents(tmp_path / "whole")
    warnings = [message for message in caplog.messages if "its lines are embedded again" in message]
    assert [name.name for name in shards[:3]] == [re.search(r"shard-[^ ]+", message)[0] for message in warnings]


@pytest.mark.parametrize("damage", [flip, cut_a_record, lambda path: os.truncate(path, path.stat().st_size - 6)])
@pytest.mark.parametrize("kind", ["hdf5", "npy"])
def test_a_shard_damaged_before_the_file_is_made_of_it_is_named(folder, tmp_path, damage, kind):
    vectors = np.ones((2, 8), np.float32)
    shards = {folder.file(f"shard-{number}"): 3 for number in range(2)}
    for first, path in zip((0, 3), shards, strict=True):
        lines = (vector_files.encode(first + number, [b"a", b"b"], vectors) for number in range(3))
        stores.write(path, b"".join(map(wire.frame, lines)))
    damage(pathlib.Path(folder.file("shard-1")))
    with pytest.raises(stores.ReadError, match=rf"^{folder.path}/shard-1 is damaged: "):
        if kind == "hdf5":
            assembly.write_hdf5(folder, shards, str(tmp_path / "output"), {})
        else:
            assembly.write_matrix(folder, shards, embed_task.Layout((2, 8), "float32", "max"))
    assert sorted(os.listdir(tmp_path)) == ["unfinished"]
    assert sorted(os.listdir(folder.path)) == ["plan.json", "shard-0", "shard-1"]


@pytest.mark.parametrize("change", ["model", slow("text")])
def test_another_model_or_text_does_not_resume_it(arguments, tmp_path, small_shards, change, monkeypatch):
    monkeypatch.setattr(engines, "make", lambda source, *_: NumpyEngine(source))  # it starts at once
    given = arguments("output")
    given[1] = str(shutil.copytree(given[1], tmp_path / "model"))
    with interrupted(embed_task, "_write", after=2):
        jobs.run("embed", given)
    changed = pathlib.Path(given[3]) if change == "text" else next((tmp_path / "model" / "variables").glob("*.data*"))
    flip(changed)
    if change == "model":
        checksums.write(tmp_path / "model")  # so that the model is not damaged, but another one
    another = {"model": "another model", "text": "another input"}[change]
    with pytest.raises(InputError, match=rf"unfinished: is the unfinished output of different options: {another}; run"):
        jobs.run("embed", given)
    assert (tmp_path / "output.unfinished").is_dir()


def test_workers_get_absolute_paths(arguments, savedmodel, tmp_path, monkeypatch):
    paths = []

    def build(pipeline, config, folder, settings, corpus, *_):
        paths.extend([settings.model, corpus[0].path])
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "build", build)
    monkeypatch.chdir(tmp_path)
    given = arguments("output")
    given[1], given[3] = os.path.relpath(given[1]), os.path.relpath(given[3])
    with pytest.raises(KeyboardInterrupt):
        jobs.run("embed", given)
    assert paths == [str(savedmodel.path), str(tmp_path / "corpus" / "0.txt")]


def test_a_file_that_appears_at_the_output_is_not_replaced_and_costs_nothing(arguments, tmp_path, monkeypatch):
    write = assembly.write_hdf5

    def appear(*given):
        (tmp_path / "output").write_bytes(b"precious")
        write(*given)

    with monkeypatch.context() as patch, pytest.raises(stores.WriteError, match=r"/output: File exists; run the same"):
        patch.setattr(assembly, "write_hdf5", appear)
        jobs.run("embed", arguments("output"))
    with pytest.raises(InputError, match=r"/output: is a file already; delete it"):
        jobs.run("embed", arguments("output"))
    assert (tmp_path / "output").read_bytes() == b"precious"
    assert {"plan.json", "shard-00000-of-00001.tfrecord"} <= {*os.listdir(tmp_path / "output.unfinished")}


@pytest.mark.parametrize(("kind", "size"), [("hdf5", "1200k"), slow("tfrecord", "400k")])
def test_a_full_disk_is_reported_and_more_room_is_enough(arguments, tmp_path, small_shards, kind, size, caplog):
    options = KINDS[kind]
    # The shards of HDF5 fit, but not the file that is made of them.
    with small_disk(tmp_path / "disk", size) as disk:
        expected = r"^cannot write /.*: No space left on device; run the same command again$"
        with pytest.raises(stores.WriteError, match=expected):
            jobs.run("embed", arguments("disk/output", *options))
        assert re.search(r"warning: the disk has room for only [0-9.,]+ [kM]B", caplog.text)
        assert not (disk / "output" / "_SUCCESS").exists()
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        jobs.run("embed", arguments("disk/output", *options))
        jobs.run("embed", arguments("whole", *options))
        assert contents(disk / "output") == contents(tmp_path / "whole")
        assert os.listdir(disk) == ["output"]


@pytest.mark.slow
def test_worker_processes_make_the_same_vectors(arguments, tmp_path):
    done = run_python("-c", SMALL, "embed", *arguments("two", *PROCESSES))
    assert done.stdout == ""
    assert re.fullmatch(r"[0-9,]+ tokens in .* tokens/s", done.stderr.splitlines()[-1])
    jobs.run("embed", arguments("one"))
    with h5py.File(tmp_path / "one") as single, h5py.File(tmp_path / "two") as two:
        assert single.keys() == two.keys()
        for name in itertools.islice(single, 100):
            np.testing.assert_allclose(single[name], two[name], **checks.TOLERANCE)


def test_a_model_that_a_worker_cannot_load_does_not_cost_what_is_done(savedmodel, tmp_path):
    """The model's files were intact when the job began, but a worker may lack the memory for them."""
    model = shutil.copytree(savedmodel.path, tmp_path / "model")
    (model / "variables" / "variables.index").write_bytes(b"no index")
    checksums.write(model)
    text = sentences.Settings("whitespace", sentences.SENTENCE)
    settings = embed_task.Settings(text, str(model), "all", embed_task.Layout((3, 16), "float32"), 99, None)
    with pytest.raises(stores.ReadError, match=r"^cannot load the model: the SavedModel is damaged: "):
        settings.load()
