"""The notes in an output folder: whenever a run is killed the folder is usable, and no finished one is lost."""

import itertools
import os
import pathlib

import pytest

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from pipelines.running import journal
from pipelines.text import filesystems

PLAN = {"some": "plan"}


def contents(*folders: pathlib.Path) -> list[dict[str, bytes]]:
    return [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]


def interrupted(monkeypatch, name: str, after: int) -> None:
    """Lets a function of `files` raise an interrupt instead of being called the `after`-th time, from 0."""
    call, count = getattr(filesystems, name), itertools.count()

    def counted(*arguments):
        if next(count) == after:
            raise KeyboardInterrupt
        return call(*arguments)

    monkeypatch.setattr(filesystems, name, counted)


def test_a_folder_with_notes_alone_is_free(corpus, process, tmp_path):
    (tmp_path / "output" / "_unfinished").mkdir(parents=True)
    (tmp_path / "output" / "_unfinished" / "plan.json.tmp-0").write_bytes(b"{")
    assert sorted(path.name for path in process(corpus(b"a b\n")).iterdir()) == [
        "_SUCCESS",
        "info.json",
        "shard-00000-of-00001.tfrecord",
        "vocab.txt",
    ]


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("then", ["old plan", "new plan"])
def test_what_a_kill_has_left_of_another_run_is_not_gone_on_with(tmp_path, monkeypatch, after, then):
    outputs = {"--output": str(tmp_path)}
    with pytest.raises(KeyboardInterrupt), journal.unfinished(outputs, {"plan": "old plan"}):
        for name in ("vocab.txt", "shard-0.tfrecord", "_unfinished/write-00000.json", "_unfinished/counts-00"):
            (tmp_path / name).write_bytes(b"old")
        raise KeyboardInterrupt
    with monkeypatch.context() as patch:
        interrupted(patch, "delete", after)
        with pytest.raises(KeyboardInterrupt), journal.unfinished(outputs, {"plan": "new plan"}):
            pass
    journal.check(str(tmp_path), "--output")
    with journal.unfinished(outputs, {"plan": then}) as resumed:
        assert not resumed
        assert os.listdir(tmp_path) == ["_unfinished"]
        assert os.listdir(tmp_path / "_unfinished") == ["plan.json"]


@pytest.mark.parametrize("resumed", [False, True])
def test_what_an_earlier_run_has_done_stays_when_input_turns_out_wrong(tmp_path, resumed):
    outputs, plan = {"--output": str(tmp_path / "output")}, {"plan": "plan"}
    if resumed:
        with pytest.raises(KeyboardInterrupt), journal.unfinished(outputs, plan):
            (tmp_path / "output" / "hours.hdf5").touch()
            raise KeyboardInterrupt
    with pytest.raises(InputError, match="wrong"), journal.unfinished(outputs, plan):
        raise InputError("wrong")
    assert (tmp_path / "output").exists() == (tmp_path / "output" / "hours.hdf5").exists() == resumed


def test_a_run_killed_between_the_markers_is_gone_on_with(corpus, process, tmp_path, monkeypatch):
    paths = corpus(b"".join(b"a b %d\n" % number for number in range(100)))
    outputs = tmp_path / "output", tmp_path / "heldout"
    options = [f"--heldout={outputs[1]}", "--heldout-fraction=0.5"]
    write = filesystems.write

    def killed(path: str, content: bytes) -> None:
        if path == str(outputs[1] / "_SUCCESS"):
            raise KeyboardInterrupt
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(filesystems, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            process(paths, *options)
    assert (outputs[0] / "_SUCCESS").exists()
    with pytest.raises(InputError, match=r"^--output: expected a folder that does not exist yet"):
        process(paths, *options, "--seed=1")  # would throw away what is finished
    assert (outputs[0] / "_SUCCESS").exists()
    process(paths, *options)
    assert [len(record_folder.open_folder(output).shards) for output in outputs] == [1, 1]
    assert not [output for output in outputs if (output / "_unfinished").exists()]


def test_a_run_killed_while_it_tidies_up_is_finished(corpus, process, tmp_path, monkeypatch):
    paths = corpus(b"a b\n")
    interrupted(monkeypatch, "delete_folder", 0)
    with pytest.raises(KeyboardInterrupt):
        process(paths)
    assert record_folder.open_folder(tmp_path / "output").info["sentences"] == 1
    with pytest.raises(InputError, match=r"^--output: expected a folder that does not exist yet"):
        process(paths)


def test_a_folder_that_another_run_has_finished_meanwhile_stays(tmp_path):
    folder = tmp_path / "output"
    with journal.unfinished({"--output": str(folder)}, PLAN):
        journal.check(str(folder), "--output")  # by another run, which goes on later
        (folder / "vocab.txt").write_bytes(b"mine")
    before = contents(folder)
    refused = pytest.raises(InputError, match=r"^--output: expected a folder that does not exist yet")
    with refused, journal.unfinished({"--output": str(folder)}, {"another": "plan"}):
        pass
    assert contents(folder) == before == [{"vocab.txt": b"mine", "_SUCCESS": b""}]


def test_a_folder_is_kept_until_it_is_tidy(tmp_path, monkeypatch):
    outputs = {"--output": str(tmp_path / "output")}
    tidy, refused = filesystems.delete_folder, []

    def watched(path: str) -> None:
        with pytest.raises(InputError) as error, journal.unfinished(outputs, PLAN):
            pass
        refused.append(str(error.value))
        tidy(path)

    monkeypatch.setattr(filesystems, "delete_folder", watched)
    with journal.unfinished(outputs, PLAN):
        pass
    assert len(refused) == 1
    assert "being written" in refused[0]


@pytest.mark.parametrize("busy", ["--output", "--heldout"])
def test_beside_a_folder_that_is_being_written_no_other_is_left(tmp_path, busy):
    outputs = {name: str(tmp_path / "new" / name.strip("-")) for name in ("--output", "--heldout")}
    with journal.unfinished({busy: outputs[busy]}, PLAN):
        refused = pytest.raises(InputError, match=f"^{busy}: expected a folder of its own")
        with refused, journal.unfinished(outputs, PLAN):
            pass
        assert os.listdir(tmp_path / "new") == [busy.strip("-")]


def test_what_a_kill_left_among_the_notes_is_deleted(tmp_path):
    outputs = {"--output": str(tmp_path)}
    notes = tmp_path / "_unfinished"
    with pytest.raises(KeyboardInterrupt), journal.unfinished(outputs, PLAN):
        for name in ("scatter-00000-train.run.tmp-0", "scatter-00000-train.run", "scatter-00001.beat"):
            (notes / name).write_bytes(b"0")
        raise KeyboardInterrupt
    with journal.unfinished(outputs, PLAN) as resumed:
        assert resumed
        assert sorted(os.listdir(notes)) == ["plan.json", "scatter-00000-train.run"]
